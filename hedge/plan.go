package hedge

// A Plan is a valid Config, prepared once for any number of Hedgers. It may be used
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

// New returns a Hedger that has learned nothing, or nil, which is off, if the Config or p
// is off.
func (p *Plan) New() *Hedger {
	if p == nil || p.rules.hedges == 0 {
		return nil
	}
	return &Hedger{rules: &p.rules}
}

// New returns a Hedger that has learned nothing (nil if c is off), or the error of
// Validate.
func New(c Config) (*Hedger, error) {
	p, err := Prepare(c)
	if err != nil {
		return nil, err
	}
	return p.New(), nil
}
