package service

import "switchyard/internal/domain"

// Duties are what this gateway does where several share the store: each duty is one gateway's at a time.
type Duties interface {
	// Epoch returns under which epoch this gateway has a duty, false when it does not have it.
	Epoch(duty string) (epoch int64, ok bool)
	// Changed returns a channel that is closed when this gateway gets or loses duties. Ask for it before Epoch.
	Changed() <-chan struct{}
}

// alone is the duties of a gateway that shares its store with nobody: it has them all.
type alone struct{}

func (alone) Epoch(string) (int64, bool) { return 0, true }

func (alone) Changed() <-chan struct{} { return nil }

// isAlone reports whether all duties are this gateway's, always.
func isAlone(d Duties) bool { return d == alone{} }

// dutyOf returns a duty, false when this gateway does not have it.
func dutyOf(d Duties, name string) (domain.Duty, bool) {
	epoch, ours := d.Epoch(name)
	return domain.Duty{Name: name, Epoch: epoch}, ours
}
