package handlers

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"

	"switchyard/internal/domain"
)

// versionSeed makes versions of one process comparable. Another process renders everything anew.
var versionSeed = maphash.MakeSeed()

// version makes the version of a page or part from what it shows: the same values in the same order are the same version.
type version struct {
	hash    maphash.Hash
	started bool
}

// version begins a version with the active project, which every page shows.
func (c *console) version() version {
	var v version
	v.text(c.service.Projects.Registry().Active)
	return v
}

func (v *version) start() {
	if !v.started {
		v.hash.SetSeed(versionSeed)
		v.started = true
	}
}

func (v *version) text(values ...string) {
	for _, value := range values {
		v.number(int64(len(value))) // so that "a", "bc" is not "ab", "c"
		_, _ = v.hash.WriteString(value)
	}
}

func (v *version) number(values ...int64) {
	v.start()
	for _, value := range values {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], uint64(value))
		_, _ = v.hash.Write(b[:])
	}
}

func (v *version) flag(values ...bool) {
	for _, value := range values {
		if value {
			v.number(1)
		} else {
			v.number(0)
		}
	}
}

// events adds events, which never change.
func (v *version) events(events []domain.Event) {
	for _, e := range events {
		v.number(e.ID)
	}
}

// charts adds the numbers that charts draw.
func (v *version) charts(c domain.Charts) {
	for _, d := range c.Days {
		v.number(d.Day.Unix(), int64(d.Finished))
	}
	for _, s := range c.Stages {
		v.text(s.Stage)
		v.number(int64(s.Median), int64(s.Stays))
	}
}

func (v *version) String() string {
	v.start()
	return strconv.FormatUint(v.hash.Sum64(), 36)
}
