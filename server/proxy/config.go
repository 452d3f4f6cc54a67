package proxy

import (
	"time"

	"github.com/lullgo/lull"
)

// Config is what a [Proxy] does: its doors, and the policies of what they lead to. It is plain data, and the file of
// "lull proxy" has the same fields in snake case. Lengths are in bytes.
type Config struct {
	// Upstreams are doors that each lead to one service, by the service's name. Its calls have the policy of that name.
	Upstreams map[string]Upstream
	// Forward is a door for programs with HTTP_PROXY. Without an address there is none.
	Forward Forward
	// Ingress is the door in front of an application on the same machine. Without an address there is none.
	Ingress Ingress
	// Limits are what every door bears. Zero fields mean the defaults.
	Limits Limits
	// Private are TCP addresses that no door may call, such as that of an admin listener.
	Private []string
	// Policy returns the policy for calls to the dependency of that name. Nil: the zero policy for all.
	Policy func(name string) lull.Policy
}

// An Upstream is a door that leads to one service.
type Upstream struct {
	// Listen is the address of the door: "127.0.0.1:9001", or "unix:/run/lull/payments.sock".
	Listen string
	// To is where the service can be reached: one or several of "https://payments.example", "http://10.0.0.7:8080",
	// "h2c://orders:50051" (HTTP/2 without TLS) and "unix:/run/app.sock". Of several, each attempt takes the less busy of
	// two, and one that fails more than the others is ejected for a while. They have one scheme.
	To []string
	// Policy is the name of the policy. Empty: the name of the upstream.
	Policy string
	// KeepHost sends the Host header that the application has sent. Otherwise it is that of To.
	KeepHost bool
	// Replay is the most of a request's body that is kept to be sent again. A longer body is sent once.
	// Zero means 1 MiB.
	Replay int64
	// Stale serves older responses to GET for so long when a call fails (lullhttp.WithStale). Zero: never.
	Stale time.Duration
	// Resume continues downloads that break off (lullhttp.WithResume).
	Resume bool
	// Routes are requests with a policy of their own, or that may be repeated although their method does not allow it.
	Routes []Route
	// CA is a file with the certificates that sign those of To, in PEM. Empty: those of the system.
	CA string
}

// A Route is what is different for some requests of a door.
type Route struct {
	// Match is a pattern of http.ServeMux without a host: "POST /charges/{id}", "/v1/", "/shop.Orders/Get". For a forward
	// door it begins with a host: "POST api.example.com/v1/".
	Match string
	// Policy is the name of a policy. These requests share no budget and no circuit with those of other names.
	// Empty: that of the door.
	Policy string
	// Repeat is whether carrying the request out twice is the same as once. Default: by its method and Idempotency-Key.
	Repeat Repeat
}

// Repeat is whether a request may be repeated after it was sent.
type Repeat uint8

const (
	// ByMethod: GET, HEAD, OPTIONS, TRACE, PUT and DELETE may be repeated, and what has an Idempotency-Key.
	ByMethod Repeat = iota
	// Yes: it may be repeated.
	Yes
	// No: only if it was provably never sent.
	No
	// Once: it has one attempt.
	Once
)

// Forward is a door for programs with HTTP_PROXY. Requests with the whole URL in them ("GET http://...") are handled as
// those of an Upstream. CONNECT passes bytes: only the connection is retried.
type Forward struct {
	Listen string
	// Hosts may be called: "api.example.com", "*.example.com" (all below it), "10.0.0.7:8080", or "*" for all. A host without
	// a port means ports 80 and 443. Addresses of this machine, of its link and of clouds' metadata are refused, also behind a
	// name, unless the address itself is here, or "localhost:8080".
	Hosts  []string
	Replay int64
	Stale  time.Duration
	Resume bool
	Routes []Route
	CA     string
}

// Ingress is the door in front of an application on the same machine.
type Ingress struct {
	Listen string
	// To is the application: "http://127.0.0.1:3000", "h2c://..." or "unix:/run/app.sock". It is not retried: its callers do that.
	To string
	// Trust is who is believed the number of an attempt, a timeout, and headers such as Lull-Retry. Default: nobody.
	Trust Trust
	// MaxTimeout bounds the time of a request that brings a longer one, or none. Zero: no bound.
	MaxTimeout time.Duration
	// Admission refuses requests that the application has no room for (package admission).
	Admission Admission
	// Keys carries out requests with an Idempotency-Key once (package idempotency).
	Keys Keys
	// Cert and Key are files in PEM. With both, the door speaks TLS. ClientCA has the certificates that sign those of
	// clients, for Trust of MutualTLS.
	Cert, Key, ClientCA string
}

// Trust is whose claims about a request are believed.
type Trust uint8

const (
	Nobody Trust = iota
	Everybody
	MutualTLS
)

// Admission is what an Ingress refuses.
type Admission struct {
	Off bool
	// Max is the most requests in flight. Zero: admission.DefaultMax.
	Max int
}

// Keys are the Idempotency-Keys of an Ingress.
type Keys struct {
	// Store has the records: "memory", "bolt:/var/lib/lull/keys.db", "redis://127.0.0.1:6379/0" or "postgres://...".
	// Empty: keys are passed on, and nothing is recorded.
	Store string
	// Scope is the header that names the caller: two callers may use the same key. Default: Authorization.
	Scope string
	// Required refuses POST and PATCH without a key.
	Required bool
}

// Limits are what every door bears of a client.
type Limits struct {
	// HeaderBytes is the most that a request's header may have. Zero means 64 KiB.
	HeaderBytes int
	// HeaderTime is how long a header may take. Zero means 10 s.
	HeaderTime time.Duration
	// BodyBytes is the most that a request's body may have. Zero: no limit.
	BodyBytes int64
	// BodyIdle is how long the body of a request or a response may bring nothing. Zero: a minute for requests whose length is
	// known, and no limit for responses. Requests of unknown length are streams, and have no limit.
	BodyIdle time.Duration
	// IdleTime is how long a connection without a request stays open. Zero means 2 minutes.
	IdleTime time.Duration
	// Connections is the most connections of one door. Zero means 10,000.
	Connections int
}

// The defaults of zero fields.
const (
	defaultReplay      = 1 << 20
	defaultHeaderBytes = 64 << 10
	defaultHeaderTime  = 10 * time.Second
	defaultIdleTime    = 2 * time.Minute
	defaultConnections = 10_000
	defaultBodyIdle    = time.Minute
)
