package gitlog

import "time"

// SetRecheck sets how often git is run although nothing seems to have changed.
func (l *Log) SetRecheck(d time.Duration) { l.recheck = d }

// SetLimits sets how often git is run, and how long reading the moves may take.
func (l *Log) SetLimits(recheck, moves time.Duration) { l.recheck, l.movesLimit = recheck, moves }

// SetDays sets of how many days the moves are read.
func (l *Log) SetDays(days int) { l.days = days }
