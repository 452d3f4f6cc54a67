package throttle

// A Plan is a Config made ready: any number of throttles can be made from one, and
// share what it holds. It is not changed by them and may be used concurrently.
type Plan struct {
	rules rules
}

// Prepare makes a plan. The error lists everything that is wrong with c.
func Prepare(c Config) (*Plan, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Plan{c.rules()}, nil
}

// New returns a throttle that knows nothing yet and lets everything pass.
func (p *Plan) New() *Throttle {
	t := new(Throttle)
	p.Init(t)
	return t
}

// Init makes a zero Throttle, such as one that is a field of something, what New
// returns. It must not be called on a throttle that is in use.
func (p *Plan) Init(t *Throttle) {
	if p.rules.mode != Off {
		t.rules = &p.rules
	}
}

// New returns a throttle that knows nothing yet and lets everything pass. The error
// lists everything that is wrong with c.
func New(c Config) (*Throttle, error) {
	p, err := Prepare(c)
	if err != nil {
		return nil, err
	}
	return p.New(), nil
}
