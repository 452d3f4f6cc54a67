package throttle

// A Plan is a valid Config, prepared once for any number of throttles. It may be used
// concurrently.
type Plan struct {
	rules rules
}

// Prepare returns a plan, or the error of Validate.
func Prepare(c Config) (*Plan, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Plan{c.rules()}, nil
}

// New returns a throttle that has counted nothing, and lets everything pass.
func (p *Plan) New() *Throttle {
	t := new(Throttle)
	if p.rules.mode != Off {
		t.rules = &p.rules
	}
	return t
}

// New returns a throttle that has counted nothing, and lets everything pass, or the error
// of Validate.
func New(c Config) (*Throttle, error) {
	p, err := Prepare(c)
	if err != nil {
		return nil, err
	}
	return p.New(), nil
}
