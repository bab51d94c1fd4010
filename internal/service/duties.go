package service

import "switchyard/internal/domain"

// Duties say what this gateway does where several share the store: each duty belongs to one gateway at a time.
type Duties interface {
	// Epoch returns the epoch under which this gateway has a duty, false when it does not have it.
	Epoch(duty string) (epoch int64, ok bool)
	// Changed returns a channel that is closed when this gateway gets or loses duties. Ask for it before Epoch.
	Changed() <-chan struct{}
}

// alone has all duties: those of a gateway that shares its store with nobody.
type alone struct{}

func (alone) Epoch(string) (int64, bool) { return 0, true }

func (alone) Changed() <-chan struct{} { return nil }

// isAlone reports whether this gateway always has all duties.
func isAlone(d Duties) bool { return d == alone{} }

// dutyOf returns a context with a duty for the store to check, false when this gateway does not have the duty.
func dutyOf(d Duties, name string) (domain.Duty, bool) {
	epoch, ours := d.Epoch(name)
	return domain.Duty{Name: name, Epoch: epoch}, ours
}
