// Command newer is the adapter of lull torture for clients in Go that need newer modules
// than lull is built with: those of newer.mod, which stands in for the go.mod of the lab. The go command passes over the folder
// (its name begins with _), so that nothing of it comes into the lab. Its argument is
// the name of the client.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/clients/internal/adapter"
	"github.com/lullgo/lull/lab/torture"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

func main() { adapter.Main(adapter.Clients{"client-go": newKubernetes, "google-api-go": newStorage}) }

// newKubernetes returns client-go's REST client, with which those of all kinds are made.
func newKubernetes(base *http.Transport) (torture.Doer, error) {
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	config := &rest.Config{Host: "http://localhost", APIPath: "/", ContentConfig: rest.ContentConfig{
		GroupVersion: &schema.GroupVersion{}, NegotiatedSerializer: codecs.WithoutConversion()}}
	client := must.Have(rest.RESTClientForConfigAndClient(config, &http.Client{Transport: base}))
	return adapter.Doer(func(r *http.Request) (*http.Response, error) {
		// Each case has a host of its own. The client is copied, and keeps its rate limiter.
		there := must.Have(rest.NewRESTClient(&url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host, Path: "/"}, "", rest.ClientContentConfig{
			GroupVersion: schema.GroupVersion{}, ContentType: "application/json", Negotiator: runtime.NewClientNegotiator(codecs.WithoutConversion(), schema.GroupVersion{})},
			client.GetRateLimiter(), client.Client))
		q := there.Verb(r.Method).RequestURI(r.URL.RequestURI())
		if body := adapter.Body(r); body != nil {
			q = q.Body(body)
		}
		for name, values := range r.Header {
			q = q.SetHeader(name, values...)
		}
		code := 0
		result := q.Do(r.Context()).StatusCode(&code)
		if err := result.Error(); code == 0 {
			return nil, errors.Join(err, errors.New("no status"))
		} else if err != nil && code/100 == 2 {
			return nil, err
		}
		return adapter.Status(code), nil
	}), nil
}

// newStorage returns the generated client of Cloud Storage: GET is Objects.Get, PUT is
// Objects.Update, and so on; POST is Objects.Insert, which uploads a small object.
func newStorage(base *http.Transport) (torture.Doer, error) {
	return adapter.Doer(func(r *http.Request) (*http.Response, error) {
		ctx := r.Context()
		client := &http.Client{Transport: at{base, r.URL}}
		service := must.Have(storage.NewService(ctx, option.WithHTTPClient(client), option.WithEndpoint(r.URL.Scheme+"://"+r.URL.Host+"/")))
		body := adapter.Body(r)
		object := &storage.Object{Name: "object", Metadata: map[string]string{"text": string(body)}}
		var err error
		switch r.Method {
		case http.MethodGet:
			_, err = service.Objects.Get("bucket", "object").Context(ctx).Do()
		case http.MethodDelete:
			err = service.Objects.Delete("bucket", "object").Context(ctx).Do()
		case http.MethodPut:
			_, err = service.Objects.Update("bucket", "object", object).Context(ctx).Do()
		case http.MethodPatch:
			_, err = service.Objects.Patch("bucket", "object", object).Context(ctx).Do()
		case http.MethodPost:
			call := service.Objects.Insert("bucket", &storage.Object{Name: "object"}).Media(bytes.NewReader(body)).Context(ctx)
			if key := r.Header.Get("Idempotency-Key"); key != "" {
				call.Header().Set("Idempotency-Key", key)
			}
			_, err = call.Do()
		default:
			err = fmt.Errorf("the client has no %s of an object", r.Method)
		}
		if failed, ok := errors.AsType[*googleapi.Error](err); ok {
			return adapter.Status(failed.Code), nil
		}
		return adapter.Status(http.StatusOK), err
	}), nil
}

// at sends all requests to one address: that of the case.
type at struct {
	base *http.Transport
	url  *url.URL
}

func (a at) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL = a.url
	return a.base.RoundTrip(r)
}
