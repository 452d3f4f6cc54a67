package queuetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lullgo/lull/internal/choice"
	"github.com/lullgo/lull/queue"
)

// What NothingLost does.
const (
	lostWorkers  = 3
	lostKills    = 4
	lostAttempts = 10
)

// NothingLost sends messages and lets worker processes handle them: a fifth fail once or
// twice, a hundredth permanently. It kills workers (kill -9) in the middle, and restarts the
// broker once, if possible. Afterwards every message was handled at least once, or is a dead
// letter with its envelope, and nothing is left in the queue. The counts are logged.
func NothingLost(t *testing.T, target Target) {
	target = target.withDefaults()
	if os.Getenv(workerVariable) != "" {
		t.Fatal("TestMain does not call queuetest.Main")
	}
	if target.Virtual {
		t.Skip("not for this broker: needs a broker that other processes can reach")
	}
	for _, order := range target.Orders {
		t.Run(order.String(), func(t *testing.T) { nothingLost(t, target, order) })
	}
}

// lost is one run of NothingLost.
type lost struct {
	*tester
	n       int
	began   time.Time
	workers []*worker

	mu       sync.Mutex
	done     map[int]int // by message: how often it was handled
	bad      map[int]int
	blipped  int
	accepted map[int]bool // done or bad, or found among the dead letters
	moved    time.Time    // when accepted last grew
	lastLine time.Time    // when a worker last spoke
	kills    int
	restarts int
}

func nothingLost(t testing.TB, target Target, order queue.Order) {
	n := target.Messages
	switch {
	case n > 0:
	case os.Getenv(allVariable) != "":
		n = 10_000
	case testing.Short() || raced:
		n = 1000
	default:
		n = 2000 // so that some hundred are handled between two kills, and some are under way at each
	}
	o := Options{Lease: max(target.Lease, 3*time.Second), Order: order, Attempts: lostAttempts}
	if order == queue.Total {
		n = max(n/20, 1) // one at a time, with waits
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()
	b := &tester{TB: t, target: target, o: o, ctx: ctx, watch: newWatch(o.Lease)}
	b.address = target.Declare(t, o)
	b.Connection = b.connect()
	b.can = b.Broker.Capabilities()
	l := &lost{tester: b, n: n, began: time.Now(), done: map[int]int{}, bad: map[int]int{}, accepted: map[int]bool{}}
	l.sendAll()
	sent := time.Since(l.began)
	b.Connection.Close() // only the workers fetch
	l.began = time.Now()
	l.moved = l.began
	for range lostWorkers {
		l.workers = append(l.workers, l.addWorker())
	}
	l.disrupt()
	handled := time.Since(l.began)
	l.settleDown()
	for _, w := range l.workers {
		w.stop()
	}
	for _, w := range l.workers {
		w.wait()
	}
	b.Connection = b.connect()
	l.count(sent, handled)
}

func (l *lost) sendAll() {
	var senders sync.WaitGroup
	numbers := make(chan int)
	for range 16 {
		senders.Go(func() {
			for i := range numbers {
				// 53 has no common factor with 100 and 5 (failsForGood, failuresOf): messages that fail are in all groups.
				o := queue.Outgoing{ID: fmt.Sprint("message-", i), Group: fmt.Sprint("g", i%53), Body: []byte(strconv.Itoa(i))}
				for tries := 1; ; tries++ {
					err := l.Sender.Send(l.ctx, o)
					if err == nil {
						break
					}
					if tries == 20 || l.ctx.Err() != nil {
						l.Errorf("Send of message %d: %v", i, err)
						break
					}
					time.Sleep(100 * time.Millisecond)
				}
			}
		})
	}
	for i := range l.n {
		numbers <- i
	}
	close(numbers)
	senders.Wait()
	if l.Failed() {
		l.FailNow()
	}
}

func (l *lost) addWorker() *worker { return l.startWorker(workHandle, lostAttempts, 0, l.hear) }

func (l *lost) hear(line string) {
	word, number, _ := strings.Cut(line, " ")
	i, err := strconv.Atoi(number)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastLine = time.Now()
	switch {
	case line == "" || line == lineLate || line == lineBuried:
		return
	case err != nil || i < 0 || i >= l.n:
		l.Errorf("a worker says %q", line)
		return
	case word == "done":
		l.done[i]++
	case word == "bad":
		l.bad[i]++
	default:
		l.blipped++
		return
	}
	l.accept(i)
}

func (l *lost) accept(i int) {
	if !l.accepted[i] {
		l.accepted[i] = true
		l.moved = time.Now()
	}
}

func (l *lost) progress() (accepted int, still time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accepted), time.Since(l.moved)
}

// disrupt kills workers and restarts the broker while messages are handled, until all were handled.
func (l *lost) disrupt() {
	looked := time.Now()
	for {
		accepted, still := l.progress()
		switch {
		case accepted == l.n:
			return
		case l.kills < lostKills && accepted >= (l.kills+1)*l.n/(lostKills+2):
			i := l.kills % len(l.workers)
			l.workers[i].kill()
			l.kills++
			l.workers[i].wait()
			l.workers[i] = l.addWorker()
		case l.target.Restart != nil && l.restarts == 0 && accepted >= l.n/2:
			l.restarts++
			l.target.Restart(l.TB)
		case still > cmp.Or(l.target.stall, 2*patience+3*l.o.Lease):
			l.Fatalf("nothing has happened for %v: %d of %d were handled or are dead letters; missing: %v", still.Round(time.Second), accepted, l.n, l.missing())
		case still > 5*time.Second && time.Since(looked) > 10*time.Second:
			l.lookAtLetters() // some may have been killed too often
			looked = time.Now()
		}
		for i, w := range l.workers {
			select {
			case <-w.ended:
				l.Logf("a worker has ended by itself: %v", w.err)
				l.workers[i] = l.addWorker()
			default:
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (l *lost) lookAtLetters() {
	l.Connection = l.connect()
	defer l.Close()
	for _, x := range l.letters(false) {
		if i, err := strconv.Atoi(string(x.Body)); err == nil {
			l.mu.Lock()
			l.accept(i)
			l.mu.Unlock()
		}
	}
}

func (l *lost) missing() (some []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.n {
		if !l.accepted[i] && len(some) < 20 {
			some = append(some, i)
		}
	}
	return some
}

// settleDown waits until nothing comes any more: a message comes again if its worker was killed before the acknowledgement.
func (l *lost) settleDown() {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		l.mu.Lock()
		silence := time.Since(l.lastLine)
		l.mu.Unlock()
		if silence > 2*l.o.Lease {
			return
		}
	}
}

func (l *lost) count(sent, handled time.Duration) {
	l.expectEmptyFor(time.Second, "after all were handled") // the leases of all that was out have ended
	reasons, letters := map[string]int{}, map[int]int{}
	for _, x := range l.letters(false) {
		i, err := strconv.Atoi(string(x.Body))
		if err != nil {
			l.Errorf("a letter with the body %q", clip(x.Body))
			continue
		}
		letters[i]++
		reasons[x.Reason]++
		switch {
		case x.Reason == queue.ReasonCrashed:
		case x.Reason == queue.ReasonBroker || x.OriginalID == "" || x.Source != "orders" || x.Attempts < 1:
			l.Errorf("message %d: a dead letter without its envelope: %+v", i, x.Envelope)
		case !failsForGood(i) || x.Reason != "permanent" || len(x.Errors) == 0:
			l.Errorf("message %d is a dead letter: %+v", i, x.Envelope)
		}
	}
	var once, again, wrong int
	var nowhere []int
	for i := range l.n {
		switch {
		case l.done[i] == 1:
			once++
		case l.done[i] > 1:
			again++
		case letters[i] == 0:
			nowhere = append(nowhere, i)
		}
		if failsForGood(i) && l.done[i] > 0 {
			wrong++
		}
	}
	if len(nowhere) > 0 {
		l.Errorf("%d messages are lost, neither handled nor dead letters: %v", len(nowhere), nowhere[:min(len(nowhere), 20)])
	}
	if wrong > 0 {
		l.Errorf("%d messages that fail for good were handled", wrong)
	}
	why := choice.Each(slices.Sorted(maps.Keys(reasons)), func(r string) string { return fmt.Sprint(reasons[r], " ", r) })
	all := 0
	for _, n := range letters {
		all += n
	}
	l.Logf("%d messages sent in %v, handled in %v by %d workers; %d workers killed, %d restarts of the broker", l.n, sent.Round(10*time.Millisecond),
		handled.Round(10*time.Millisecond), lostWorkers, l.kills, l.restarts)
	l.Logf("handled once %d, more than once %d; failed for a while %d times; dead letters %d (%s) of %d messages; lost %d",
		once, again, l.blipped, all, strings.Join(why, ", "), len(letters), len(nowhere))
}
