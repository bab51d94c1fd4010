package sqlite_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"switchyard/internal/store/sqlite"
)

func TestADamagedDatabaseIsNamedAndLeftAsItIs(t *testing.T) {
	fill := func(data []byte, from, to int) []byte {
		damaged := bytes.Clone(data)
		for i := from; i < to; i++ {
			damaged[i] = 0xff
		}
		return damaged
	}
	whole := filepath.Join(t.TempDir(), "whole")
	db, err := sqlite.Open(context.Background(), whole)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if err := db.SetState(context.Background(), strconv.Itoa(i), strings.Repeat("x", 1000)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(whole, sqlite.FileName))
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]func(data []byte) []byte{
		"no database":   func([]byte) []byte { return bytes.Repeat([]byte("not a database "), 100) },
		"cut off":       func(data []byte) []byte { return data[:len(data)/2] },
		"header only":   func(data []byte) []byte { return data[:100] },
		"first page":    func(data []byte) []byte { return fill(data, 100, 4096) },
		"schema number": func(data []byte) []byte { return fill(data, 60, 64) },
		"in the middle": func(data []byte) []byte { return fill(data, len(data)/2, len(data)/2+8192) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "a dir?#%20")
			path := filepath.Join(dir, sqlite.FileName)
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			damaged := damage(data)
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := sqlite.Open(context.Background(), dir); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("Open = %v, want an error that names %s", err, path)
			}
			if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, damaged) {
				t.Errorf("the file was changed (%v)", err)
			}
		})
	}
}

// BenchmarkOpen opens a database just small enough to be checked whole.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	db, err := sqlite.Open(b.Context(), dir)
	if err != nil {
		b.Fatal(err)
	}
	for i := range 3700 {
		if err := db.SetState(b.Context(), strconv.Itoa(i), strings.Repeat("x", 900)); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, sqlite.FileName))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		db, err := sqlite.Open(b.Context(), dir)
		if err != nil {
			b.Fatal(err)
		}
		db.Close()
	}
	b.ReportMetric(float64(info.Size())/1e6, "MB")
}
