package domain

import "context"

// Names of duties. If several gateways share a database, each duty belongs to one of them at a time.
const (
	DutyBot       = "bot"
	DutyRetention = "retention" // the removal of old events
	DutyStays     = "stays"     // the saving of stays
)

// FeedDuty is the name of the duty to follow a project's feed.
func FeedDuty(project string) string { return "feed:" + project }

// ErrDutyLost is returned for a write that was refused because another gateway has taken over its duty.
var ErrDutyLost = Errorf(Unavailable, "another gateway has taken over")

// Duty is a duty granted to a gateway. Each grant has a greater epoch than the one before.
type Duty struct {
	Name  string
	Epoch int64
}

type dutyKey struct{}

// WithDuty returns a context whose writes are refused with ErrDutyLost once another gateway has taken over the duty. With epoch 0
// no write is refused.
func WithDuty(ctx context.Context, d Duty) context.Context {
	if d.Epoch == 0 {
		return ctx
	}
	return context.WithValue(ctx, dutyKey{}, d)
}

// DutyOf returns the duty that writes are under.
func DutyOf(ctx context.Context) (d Duty, ok bool) {
	d, ok = ctx.Value(dutyKey{}).(Duty)
	return d, ok
}
