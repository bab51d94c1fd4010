package main

import (
	"bytes"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"switchyard/internal/config"
	"switchyard/internal/store/postgres"
	"switchyard/internal/store/sqlite"
)

// startLog is the log of a gateway, whose first line says what has started. Until then it holds back what is written to
// it.
type startLog struct {
	log, direct *slog.Logger
	began       time.Time

	mu   sync.Mutex
	to   io.Writer
	held bytes.Buffer
	open bool
	said bool
}

func newStartLog(to io.Writer, c *config.Config) *startLog {
	l := &startLog{to: to, began: time.Now(), direct: newLogger(to, c.LogFormat, c.LogLevel)}
	l.log = newLogger(l, c.LogFormat, c.LogLevel)
	return l
}

func (l *startLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		return l.held.Write(p)
	}
	return l.to.Write(p)
}

func (l *startLog) started(address string, c *config.Config) {
	l.direct.Info("Switchyard has started", "version", version(), "address", address, "database", databaseOf(c),
		"took", time.Since(l.began).Round(time.Millisecond).String())
	l.said = true
	l.release()
}

// ended writes the last line, or what was held back if the start failed.
func (l *startLog) ended() {
	l.release()
	if l.said {
		l.direct.Info("Switchyard has stopped")
	}
}

func (l *startLog) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = true
	_, _ = l.held.WriteTo(l.to)
}

// databaseOf names the database, without passwords.
func databaseOf(c *config.Config) string {
	if c.Database == "" {
		return filepath.Join(c.Data, sqlite.FileName)
	}
	return postgres.Address(c.Database.Reveal())
}
