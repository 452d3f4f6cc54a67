package hedge

// A Plan is a Config made ready: any number of Hedgers can be made from one, and
// share what it holds. It is not changed by them and may be used concurrently.
type Plan struct {
	rules rules
}

// Prepare returns a plan, or an error if the configuration is wrong.
func Prepare(c Config) (*Plan, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Plan{c.rules()}, nil
}

// New returns a Hedger that knows nothing yet, or nil, which is as good as one
// that is off, if the configuration is off. A nil Plan is off.
func (p *Plan) New() *Hedger {
	if p == nil || p.rules.hedges == 0 {
		return nil
	}
	h := new(Hedger)
	p.Init(h)
	return h
}

// Init makes a zero Hedger, such as one that is a field of something, what New
// returns. It must not be called on one that is in use.
func (p *Plan) Init(h *Hedger) {
	if p != nil && p.rules.hedges > 0 {
		h.rules = &p.rules
	}
}

// New returns a Hedger that knows nothing yet (nil, which is as good as one that is
// off, if c is off), or what is wrong with the configuration.
func New(c Config) (*Hedger, error) {
	p, err := Prepare(c)
	if err != nil {
		return nil, err
	}
	return p.New(), nil
}
