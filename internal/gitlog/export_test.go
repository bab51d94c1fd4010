package gitlog

import "time"

// SetRecheck sets how often git is run although nothing seems to have changed.
func (l *Log) SetRecheck(d time.Duration) { l.recheck = d }

// SetLimits sets how often git is run, and how long reading the moves may take.
func (l *Log) SetLimits(recheck, moves time.Duration) { l.recheck, l.movesLimit = recheck, moves }

// SetDays sets of how many days the moves are read.
func (l *Log) SetDays(days int) { l.days = days }

// SetAges sets how old what is known of a work tree may be where edits are not noticed, and after an edit.
func (w *Work) SetAges(status, edit time.Duration) { w.statusAge, w.editAge = status, edit }

// SetMostWatched sets how many directories are watched at most.
func (w *Work) SetMostWatched(most int) { w.edits.most = most }
