package poll_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/poll"
)

// duties are those of one of several gateways.
type duties struct {
	mu      sync.Mutex
	epochs  map[string]int64
	changed chan struct{}
}

func newDuties() *duties { return &duties{epochs: map[string]int64{}, changed: make(chan struct{})} }

func (y *site) dutiesOrNone() poll.Duties {
	if y.duties == nil {
		return nil
	}
	return y.duties
}

func (d *duties) Epoch(duty string) (int64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	epoch := d.epochs[duty]
	return epoch, epoch > 0
}

func (d *duties) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// grant gives the gateway the duty to follow alpha under an epoch; 0 takes it away.
func (d *duties) grant(epoch int64) {
	d.mu.Lock()
	d.epochs[domain.FeedDuty("alpha")] = epoch
	close(d.changed)
	d.changed = make(chan struct{})
	d.mu.Unlock()
	synctest.Wait()
}

func TestFeedIsFollowedWhileItIsOursAndEachReadIsUnderItsEpoch(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *site) {
		y.stop()
		y.duties = newDuties()
		before := len(a.requests())
		y.start()
		y.pass(time.Minute)
		if n := len(a.requests()) - before; n != 0 {
			t.Errorf("%d requests to a project that another gateway follows", n)
		}
		y.duties.grant(3)
		a.push(20)
		y.want("10 20")

		y.duties.grant(0)
		asked, noticed := len(a.requests()), len(y.reported)
		a.push(30)
		y.pass(time.Minute)
		if n := len(a.requests()) - asked; n != 0 {
			t.Errorf("%d requests after another gateway took over", n)
		}
		if noticed == 0 || y.reported[noticed-1] != "failed" {
			t.Errorf("what the feed said last of its pipeline still counts: %v", y.reported)
		}
		y.mu.Lock()
		y.cursors[0].Since, y.cursors[0].Sequence = 30, 3 // read by the other gateway
		y.mu.Unlock()
		y.duties.grant(5)
		a.push(40)
		y.pass(soon)
		if got := y.stream("alpha"); got != "10 20 40" {
			t.Errorf("stored %q: the cursor was not read again", got)
		}
		if last := y.reads[len(y.reads)-1]; y.reads[0].Epoch != 0 || last.Epoch != 5 {
			t.Errorf("epochs %d and %d", y.reads[0].Epoch, last.Epoch)
		}
	})
}

func TestReadThatIsRefusedIsNoFailureOfTheFeed(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *site) {
		y.setFailure(domain.ErrDutyLost)
		a.push(20)
		y.pass(time.Second)
		if n := y.log.Count("feed cannot be read"); n != 0 {
			t.Errorf("logged %d times", n)
		}
		y.setFailure(nil)
		y.pass(time.Minute)
		y.want("10 20")
	})
}
