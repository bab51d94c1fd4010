package domain

import "time"

// Acknowledgement records that somebody is taking care of an alert. It ends with the alert, or when the alert's text
// changes.
type Acknowledgement struct {
	Key     string // of the alert
	Project string // that the alert is about, "" for none
	Text    string // of the alert at that time
	By      string
	At      time.Time
	Until   time.Time // zero: until the alert ends
	Since   time.Time // when the alert began; zero if unknown
}

// Ends reports whether alert is no longer the one that was acknowledged: its text differs, or its story has been
// blocked or has failed to merge again.
func (a Acknowledgement) Ends(alert Alert) bool {
	again := (alert.Kind == AlertBlocked || alert.Kind == AlertMerge) && !a.Since.IsZero() && alert.Since.After(a.Since)
	return again || alert.Text() != a.Text
}

// ParseAcknowledgedFor parses the duration of an acknowledgement. It returns Invalid for an unknown one.
func ParseAcknowledgedFor(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, Errorf(Invalid, "for: must be a duration, such as 4h or 1h30m")
	}
	return d, nil
}
