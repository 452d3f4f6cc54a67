package proxy

import "net/http"

// refusalOf returns what is wrong with a request that net/http has accepted, or "".
func refusalOf(r *http.Request) string {
	switch {
	case r.ProtoMajor == 1 && r.ProtoMinor == 1 && r.Host == "":
		return "the request has no Host"
	case loops(r.Header):
		return "the request goes round in circles: see its Via header"
	}
	return ""
}
