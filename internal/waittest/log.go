package waittest

import (
	"strings"
	"sync"
)

// Log collects the output of goroutines, which a test can read at any time. The zero value is empty.
type Log struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// String returns all that was written.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Count returns how often text has been written.
func (l *Log) Count(text string) int { return strings.Count(l.String(), text) }
