package gitlog

import (
	"os"
	"path/filepath"
	"time"
)

// signature changes when HEAD does. It covers two files: HEAD, which changes with the branch, and HEAD's reflog.
type signature [2]struct {
	size     int64
	modified time.Time
}

func (l *Log) signature() (s signature) {
	if l.gitDir == "" {
		return s
	}
	for i, name := range []string{"HEAD", filepath.Join("logs", "HEAD")} {
		if info, err := os.Stat(filepath.Join(l.gitDir, name)); err == nil {
			s[i].size, s[i].modified = info.Size(), info.ModTime()
		}
	}
	return s
}
