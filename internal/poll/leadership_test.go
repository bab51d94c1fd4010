package poll_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/internal/domain"
)

// leadership is that of one of several gateways.
type leadership struct {
	mu      sync.Mutex
	token   int64
	changed chan struct{}
}

func newLeadership() *leadership { return &leadership{changed: make(chan struct{})} }

func (y *site) leadershipOrNone() domain.Leadership {
	if y.leadership == nil {
		return nil
	}
	return y.leadership
}

func (d *leadership) Leads() bool { _, leads := d.Token(); return leads }

func (d *leadership) Token() (int64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.token, d.token > 0
}

func (d *leadership) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

// grant makes the gateway lead under a token; 0 ends that.
func (d *leadership) grant(token int64) {
	d.mu.Lock()
	d.token = token
	close(d.changed)
	d.changed = make(chan struct{})
	d.mu.Unlock()
	synctest.Wait()
}

func TestFeedsAreFollowedWhileThisGatewayLeadsAndReadsAreUnderItsToken(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *site) {
		y.stop()
		y.leadership = newLeadership()
		before := len(a.requests())
		y.start()
		y.pass(time.Minute)
		if n := len(a.requests()) - before; n != 0 {
			t.Errorf("%d requests while another gateway leads", n)
		}
		y.leadership.grant(3)
		a.push(20)
		y.want("10 20")

		y.leadership.grant(0)
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
		y.leadership.grant(5)
		a.push(40)
		y.pass(soon)
		if got := y.stream("alpha"); got != "10 20 40" {
			t.Errorf("stored %q: the cursor was not read again", got)
		}
		if last := y.reads[len(y.reads)-1]; y.reads[0].Token != 0 || last.Token != 5 {
			t.Errorf("tokens %d and %d", y.reads[0].Token, last.Token)
		}
	})
}

func TestReadThatIsRefusedIsNoFailureOfTheFeed(t *testing.T) {
	a := newServer("i", 10)
	following(t, a, func(y *site) {
		y.setFailure(domain.ErrNotLeader)
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
