package budget

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
)

// A model is the rule of Ratio written down slowly: a list of everything that
// was ever paid in or out, with the slot it happened in, summed on every look,
// and the line of all units ever earned, end to end, with its marks.
type model struct {
	cfg      Config
	width    time.Duration
	per      int64 // units that one earning call deposits
	reserve  int64
	list     []entry
	started  bool
	first    int64         // slot of the first use
	marked   bool          // a mark was drawn and holds
	mark     int64         // where on the line; the others are whole tokens away
	looked   int64         // slot of the last withdrawal that was judged
	clock    int64         // latest slot seen by anybody
	now      time.Duration // latest time seen by a withdrawal
	until    time.Duration
	empty    bool
	refused  time.Duration
	lastSeen int // entries before this one have expired for good

	// What happened, for the bounds.
	earned, initial int64
	grants          int64
	draws           int64
}

type entry struct {
	slot  int64
	units int64
	grant bool
	earn  bool
}

func newModel(c Config) *model {
	if c.Ratio == 0 {
		c.Ratio = 0.1
	}
	m := &model{cfg: c, width: c.Window / 10, clock: -1}
	m.per = int64(math.Round(c.Ratio * 100_000))
	m.reserve = 10 * int64(math.Round(c.Floor*m.width.Seconds()*100_000))
	m.initial = int64(math.Round(c.Stock * 100_000))
	if c.Earn == Successes {
		m.initial += m.per
	}
	return m
}

// at moves the model's time on; it never goes back, and the initial stock is
// paid in when it first moves.
func (m *model) at(now time.Duration) int64 {
	m.clock = max(m.clock, int64(max(now, 0)/m.width))
	if !m.started {
		m.started, m.first = true, m.clock
		m.list = append(m.list, entry{slot: m.clock, units: m.initial, earn: true})
	}
	return m.clock
}

func (m *model) live(slot int64) []entry {
	for m.lastSeen < len(m.list) && m.list[m.lastSeen].slot <= m.clock-10 {
		m.lastSeen++
	}
	first := m.lastSeen
	for first < len(m.list) && m.list[first].slot <= slot-10 {
		first++
	}
	return m.list[first:]
}

func (m *model) sum(slot int64) int64 {
	sum := m.reserve
	for _, e := range m.live(slot) {
		sum += e.units
	}
	return sum
}

// line is how many units were ever earned. The floor earns its reserve at once,
// and a tenth of it in each slot.
func (m *model) line() int64 {
	return m.earned + m.initial + m.reserve + (m.clock-m.first)*(m.reserve/10)
}

// marks counts the marks before a place on the line, from any fixed beginning.
func marks(mark, place int64) int64 {
	return int64(math.Floor(float64(place-mark-1)/100_000)) + 1
}

func (m *model) earn(now time.Duration) {
	slot := m.at(now)
	m.list = append(m.list, entry{slot: slot, units: m.per, earn: true})
	m.earned += m.per
}

func (m *model) withdraw(now time.Duration, rnd func() uint64) Grant {
	m.now = max(m.now, now, 0)
	if m.now < m.until {
		return Grant{Until: m.until}
	}
	slot := m.at(m.now)
	balance := m.sum(slot)
	if slot-m.looked >= 10 {
		m.marked = false
	}
	m.looked = slot
	line := m.line()
	if !m.marked && balance > 0 && balance < 100_000 {
		// The u-th of the units that are left, u = token - floor(r/2^64 × token).
		r := uint64(1) << 63
		if rnd != nil {
			r = rnd()
		}
		down, _ := bits.Mul64(r, 100_000)
		m.marked, m.mark = true, line-balance+(100_000-int64(down))-1
		m.draws++
	}
	grant := balance >= 100_000
	if m.marked && balance > 0 {
		// Is there a mark in what is left, the newest balance units of the line?
		grant = marks(m.mark, line) > marks(m.mark, line-balance)
	}
	if grant {
		m.list = append(m.list, entry{slot: slot, units: -100_000, grant: true})
		m.grants++
		m.empty = false
		return Grant{OK: true, Receipt: 1}
	}
	if m.cfg.Cooldown > 0 {
		m.until = m.now + m.cfg.Cooldown
		return Grant{Exhausted: true, Until: m.until}
	}
	news := !m.empty || m.now-m.refused >= 10*m.width
	m.empty, m.refused = true, m.now
	return Grant{Exhausted: news}
}

func (m *model) balance(now time.Duration) float64 {
	now = max(m.now, now, 0)
	if now < m.until {
		return 0
	}
	units := m.reserve + m.initial
	if m.started {
		units = m.sum(max(m.clock, int64(now/m.width)))
	}
	return float64(max(units, 0)) / 100_000
}

// bounds checks what the package promises, from the list alone.
func (m *model) bounds() error {
	// In the window that ends with any grant, grants stay below what that window
	// earned, the reserve, and less than one token for the draw.
	var in, out int64
	first := 0
	for _, e := range m.list {
		for ; m.list[first].slot <= e.slot-10; first++ {
			if m.list[first].earn {
				in -= m.list[first].units
			} else if m.list[first].grant {
				out -= 100_000
			}
		}
		if e.earn {
			in += e.units
		}
		if !e.grant {
			continue
		}
		out += 100_000
		if out >= in+m.reserve+100_000 {
			return fmt.Errorf("window ending in slot %d: %d units of retries, earned %d, reserve %d", e.slot, out, in, m.reserve)
		}
	}
	// In all, it is less than one token for each draw, and no draw is due before
	// a whole window without a withdrawal.
	if limit := m.line() + max(m.draws, 1)*100_000; m.grants > 0 && m.grants*100_000 >= limit {
		return fmt.Errorf("%d retries; earned %d, %d draws", m.grants, m.line(), m.draws)
	}
	if most := (m.clock-m.first)/10 + 1; m.draws > most {
		return fmt.Errorf("%d draws in %d windows", m.draws, most)
	}
	return nil
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomConfig(r *rand.Rand) Config {
	return Config{
		Ratio:    pick(r, 0, 0.1, 0.1, 0.2, 0.33333, 1, 2.5, 0.00001, 4, 0.00012+r.Float64()),
		Window:   pick(r, 10*time.Second, 100*time.Millisecond, time.Second, 999*time.Millisecond+7, time.Hour, 10*time.Second),
		Earn:     pick(r, Successes, Successes, Arrivals),
		Floor:    pick(r, 0, 0, 0, 0.05, 1, 10),
		Cooldown: pick(r, 0, 0, 0, time.Millisecond, 3*time.Second),
		Stock:    pick(r, 0, 0, 0, 0.5, 3, 10),
	}
}

// Over a million operations, at random times that also jump and run backwards,
// Ratio answers exactly as the model does, and the model keeps the bounds.
func TestRatioAgreesWithASlowModel(t *testing.T) {
	const runs, opsPerRun = 2400, 500
	var total, grants, draws int64
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 0x1a11))
		cfg := randomConfig(r)
		b := mustRatio(t, cfg)
		m := newModel(cfg)
		failing := r.Float64() // the share of calls that fail in this run
		now := time.Duration(r.Int64N(int64(100 * m.width)))
		step := int64(pick(r, m.width/200, m.width/10, m.width, 3*m.width)) + 1
		for op := range opsPerRun {
			at := now
			switch r.IntN(40) {
			case 0:
				now += time.Duration(r.Int64N(int64(15 * m.width)))
			case 1:
				now += time.Duration(r.Int64N(int64(400 * m.width)))
			case 2, 3: // a goroutine that is late
				at -= time.Duration(r.Int64N(int64(3 * m.width)))
			default:
				now += time.Duration(r.Int64N(step))
			}
			where := func() string { return fmt.Sprintf("seed %d, operation %d, now %v, %+v", seed, op, at, cfg) }
			switch k := r.Float64(); {
			case k < 0.05:
				if got, want := b.Balance(at), m.balance(at); got != want {
					t.Fatalf("%s: Balance = %v, want %v", where(), got, want)
				}
			case k < 0.10:
				b.Failed(at)
				b.Release(at, Receipt(r.Int64()))
			case k < 0.5 && r.Float64() < failing:
				var ours, theirs func() uint64
				if r.IntN(4) != 0 {
					bits, calls := r.Uint64(), 0
					ours = func() uint64 {
						if calls++; calls > 1 {
							t.Fatalf("%s: drew twice", where())
						}
						return bits
					}
					theirs = func() uint64 { return bits }
				}
				if got, want := b.Withdraw(at, Class(r.IntN(4)), ours), m.withdraw(at, theirs); got != want {
					t.Fatalf("%s: Withdraw = %+v, want %+v", where(), got, want)
				}
			default:
				b.Start(at)
				if cfg.Earn == Arrivals {
					m.earn(at)
				}
				success := r.Float64() >= failing
				b.Done(at, success, Receipt(r.Int64N(2)), r.IntN(2))
				if success && cfg.Earn == Successes {
					m.earn(at)
				}
			}
			total++
		}
		if err := m.bounds(); err != nil {
			t.Fatalf("seed %d, %+v: %v", seed, cfg, err)
		}
		grants += m.grants
		draws += m.draws
	}
	t.Logf("%d operations, %d retries granted, %d draws", total, grants, draws)
	if total < 1e6 || grants < 1e4 || draws < 1e4 {
		t.Errorf("too little happened to mean much: %d operations, %d retries granted, %d draws", total, grants, draws)
	}
}
