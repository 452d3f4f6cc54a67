package admission

import "net/http"

// HeaderCriticality is the request header with the Priority as text, such as
// "sheddable". (The header Priority of RFC 9218 is another thing: browsers send it
// unasked, to order the responses on one connection.)
const HeaderCriticality = "Lull-Criticality"

// PriorityOf returns the Priority in the first HeaderCriticality, or Critical if that is
// missing or unknown.
//
// The client chose it. A Middleware reads it only from those that [WithTrust] names.
func PriorityOf(h http.Header) Priority {
	var p Priority
	if v := h[HeaderCriticality]; len(v) > 0 && p.UnmarshalText([]byte(v[0])) != nil {
		return Critical
	}
	return p
}
