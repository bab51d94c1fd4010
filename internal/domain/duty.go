package domain

import "context"

// Names of duties. Where several gateways share a database, each duty belongs to one of them at a time.
const (
	DutyBot       = "bot"
	DutyRetention = "retention" // the removal of old events
	DutyStays     = "stays"     // the saving of where stories have been
)

// FeedDuty is the name of the duty to follow a project's feed.
func FeedDuty(project string) string { return "feed:" + project }

// ErrDutyLost says that a write was refused because another gateway has its duty now.
var ErrDutyLost = Errorf(Unavailable, "another gateway does this by now")

// Duty is a duty granted to a gateway. Each grant has a greater epoch than the one before.
type Duty struct {
	Name  string
	Epoch int64
}

type dutyKey struct{}

// WithDuty returns a context whose writes are refused with ErrDutyLost once another gateway has taken over the duty. An epoch
// of 0 is that of a gateway alone: nothing is refused.
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
