package gitlog

import "time"

// SetRecheck sets how often git is run although nothing seems to have changed.
func (l *Log) SetRecheck(d time.Duration) { l.recheck = d }

// SetDays sets of how many days the moves are read.
func (l *Log) SetDays(days int) { l.days = days }
