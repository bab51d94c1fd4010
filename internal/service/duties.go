package service

import "switchyard/internal/domain"

// Duties are this gateway's duties. If several gateways share the store, each duty belongs to one of them at a time.
type Duties interface {
	// Epoch returns the epoch under which this gateway has a duty, false if it does not have it.
	Epoch(duty string) (epoch int64, ok bool)
	// Changed returns a channel that is closed when this gateway gets or loses duties. Call it before Epoch.
	Changed() <-chan struct{}
}

// alone has all duties, for a gateway that shares its store with no other.
type alone struct{}

func (alone) Epoch(string) (int64, bool) { return 0, true }

func (alone) Changed() <-chan struct{} { return nil }

// isAlone reports whether this gateway always has all duties.
func isAlone(d Duties) bool { return d == alone{} }

// dutyOf returns a duty with its epoch, for the store to check, false if this gateway does not have the duty.
func dutyOf(d Duties, name string) (domain.Duty, bool) {
	epoch, ours := d.Epoch(name)
	return domain.Duty{Name: name, Epoch: epoch}, ours
}
