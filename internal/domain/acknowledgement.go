package domain

import "time"

// Acknowledgement says that somebody takes care of an alert. It ends with the alert, or when the alert's text changes.
type Acknowledgement struct {
	Key     string // of the alert
	Project string // that the alert is about, "" for none
	Text    string // of the alert at that time
	By      string
	At      time.Time
	Until   time.Time // zero for as long as the alert lasts
	Since   time.Time // when the alert began; zero if unknown
}

// Ends reports whether the alert is no longer the one that was acknowledged: its text differs, or its story was blocked or
// failed to merge once more.
func (a Acknowledgement) Ends(alert Alert) bool {
	again := (alert.Kind == AlertBlocked || alert.Kind == AlertMerge) && !a.Since.IsZero() && alert.Since.After(a.Since)
	return again || alert.Text() != a.Text
}

// ParseAcknowledgedFor parses how long an alert is to be acknowledged. It returns Invalid for anything else.
func ParseAcknowledgedFor(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, Errorf(Invalid, "for: must be a duration, such as 4h or 1h30m")
	}
	return d, nil
}
