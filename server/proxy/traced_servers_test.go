//go:build servers

package proxy_test

import (
	"context"
	"net/http/httptrace"
	"net/textproto"
)

// traced calls got with the status of each informational response.
func traced(ctx context.Context, got func(int)) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(code int, _ textproto.MIMEHeader) error {
		got(code)
		return nil
	}})
}
