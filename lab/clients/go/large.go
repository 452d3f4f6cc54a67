//go:build large

// Clients that take minutes to build, and so stand behind a tag that install.sh sets.

package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-github/v92/github"
	"github.com/lullgo/lull/internal/must"
	"github.com/lullgo/lull/lab/clients/internal/adapter"
	"github.com/lullgo/lull/lab/torture"
)

func init() {
	// go-github repeats nothing; its errors of rate limits end calls before they are made.
	clients["go-github"] = func(base *http.Transport) (torture.Doer, error) {
		client, err := github.NewClient(github.WithHTTPClient(&http.Client{Transport: base}))
		if err != nil {
			return nil, err
		}
		return adapter.Doer(func(r *http.Request) (*http.Response, error) {
			var v any // its methods decode what they get
			return adapter.Status(must.Have(client.Do(r, &v)).StatusCode), nil
		}), nil
	}
	clients["aws-sdk-go-s3"] = func(base *http.Transport) (torture.Doer, error) {
		client := &http.Client{Transport: base}
		return adapter.Doer(func(r *http.Request) (*http.Response, error) { return overS3(client, r) }), nil
	}
}

// overS3 makes a request as the operation of S3 that has its method.
func overS3(over *http.Client, r *http.Request) (*http.Response, error) {
	client := s3.New(s3.Options{BaseEndpoint: aws.String(r.URL.Scheme + "://" + r.URL.Host), Region: "us-east-1", UsePathStyle: true, Credentials: aws.AnonymousCredentials{}, HTTPClient: over,
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired})
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	ctx := r.Context()
	var err error
	switch r.Method {
	case http.MethodGet:
		var out *s3.GetObjectOutput
		if out, err = client.GetObject(ctx, &s3.GetObjectInput{Bucket: &bucket, Key: &key}); err == nil {
			defer out.Body.Close()
			must.Have(io.Copy(io.Discard, out.Body))
		}
	case http.MethodHead:
		_, err = client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
	case http.MethodDelete:
		_, err = client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	case http.MethodPut:
		_, err = client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(adapter.Body(r))})
	default:
		err = errors.New("S3 has no " + r.Method + " of an object's key")
	}
	if failed, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return adapter.Status(failed.HTTPStatusCode()), nil
	}
	if err != nil {
		return nil, err
	}
	return adapter.Status(http.StatusOK), nil
}
