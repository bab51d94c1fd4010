package domain

import "time"

// Acknowledgement says that somebody knows of an alert. It ends with the trouble, or when that changes its text.
type Acknowledgement struct {
	Key     string // of the alert
	Project string // that it is about, "" for none
	Text    string // that it had
	By      string
	At      time.Time
	Until   time.Time // zero for as long as the trouble lasts
	Since   time.Time // when the trouble began; zero where that is not known
}

// Ends reports whether the alert is about something else than what was acknowledged: it says something else, or its story was
// blocked or failed to merge once more.
func (a Acknowledgement) Ends(alert Alert) bool {
	again := (alert.Kind == AlertBlocked || alert.Kind == AlertMerge) && !a.Since.IsZero() && alert.Since.After(a.Since)
	return again || alert.Text() != a.Text
}

// ParseAcknowledgedFor reads for how long somebody acknowledges an alert. It returns Invalid.
func ParseAcknowledgedFor(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, Errorf(Invalid, "for: must be a duration, such as 4h or 1h30m")
	}
	return d, nil
}
