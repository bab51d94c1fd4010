package gitlog

import "time"

// SetRecheck sets how often git is run although nothing seems to have changed.
func (l *Log) SetRecheck(d time.Duration) { l.recheck = d }
