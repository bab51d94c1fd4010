package gitlog

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strconv"
	"strings"

	"switchyard/internal/domain"
	"switchyard/internal/git"
	"switchyard/internal/wire"
)

const (
	// maxChanged is how many files of a diff are listed, and maxPaths the size of their names.
	maxChanged, maxPaths = 2000, 512 << 10
	// maxDiff is how much of a diff is returned, in bytes, maxRead how much of it is read.
	maxDiff, maxRead = 1 << 20, 64 << 20
)

// diffArgs make git list the files that differ, with line counts and text, whatever the repository's configuration.
var diffArgs = strings.Fields("diff --raw --numstat --patch -z --no-abbrev -M --unified=3 --inter-hunk-context=0 " +
	"--src-prefix=a/ --dst-prefix=b/")

// diff is git's description of how files differ.
type diff struct {
	only  string // the path of the only requested file, "" for all
	files []wire.ChangedFile
	more  int // how many other files there are
	text  strings.Builder
	cut   bool

	index   map[string]int // of files, by path
	path    string         // what git calls the last of them, and its former name
	from    string
	parts   []int // the file of each part of the text, -1 for one that is not listed
	hashes  []hash.Hash
	paths   int // the size of their names
	encoded int // the size of the text
}

// diff reads how two commits, or one and the work tree, differ; with only, in one file.
func (r repository) diff(ctx context.Context, only string, states ...string) (*diff, error) {
	args := append(append([]string{}, diffArgs...), states...)
	paths := []string{"--"}
	if only != "" { // a renamed file is found under both names
		found := &diff{only: only}
		err := r.Stream(ctx, nil, found.readFiles, append([]string{"diff", "--raw", "-z", "-M"}, states...)...)
		if err != nil || found.path == "" {
			return found, err
		}
		if paths = append(paths, found.path); found.from != "" {
			paths = append(paths, found.from)
		}
	}
	d := &diff{only: only}
	err := r.Stream(ctx, nil, func(out *bufio.Reader) error {
		if err := d.readFiles(out); err != nil {
			return err
		}
		return d.readText(out)
	}, append(args, paths...)...)
	return d, err
}

// readFiles reads what precedes the text: for each file modes, hashes and status, and then its line counts.
func (d *diff) readFiles(out *bufio.Reader) error {
	d.index = map[string]int{}
	next := func() string {
		record, _ := git.ReadRecord(out, 0)
		return string(record)
	}
	for {
		record, err := git.ReadRecord(out, 0)
		if len(record) == 0 || err != nil {
			return err
		}
		if record[0] == ':' {
			about, from := string(record), ""
			status := about[strings.LastIndexByte(about, ' ')+1:]
			path := next()
			if strings.Count(about, " ") < 4 || strings.HasPrefix(status, "U") { // it is unmerged, and occurs once more
				continue
			}
			if strings.HasPrefix(status, "R") {
				from, path = path, next()
			}
			d.add(path, from, about)
			continue
		}
		added, rest, _ := strings.Cut(string(record), "\t")
		removed, path, isComplete := strings.Cut(rest, "\t")
		if !isComplete {
			continue
		}
		if path == "" { // it was renamed
			_, path = next(), next()
		}
		if at, told := d.index[path]; told {
			setNumbers(&d.files[at], added, removed)
		}
	}
}

// add counts a file, and lists it if there is room; about has its modes, hashes and status.
func (d *diff) add(path, from, about string) {
	shown := strings.ToValidUTF8(path, "\ufffd")
	isTold := (d.only == "" || d.only == shown) && len(d.files) < maxChanged && d.paths <= maxPaths
	if !isTold {
		if d.parts = append(d.parts, -1); d.only == "" {
			d.more++
		}
		return
	}
	d.parts = append(d.parts, len(d.files))
	d.index[path] = len(d.files)
	d.path, d.from = path, from
	d.paths += encodedSize(path) + encodedSize(from)
	d.files = append(d.files, wire.ChangedFile{
		Path: shown, From: wire.OrNull(strings.ToValidUTF8(from, "\ufffd")), Status: statusOf(strings.Fields(about)),
	})
	sum := sha256.New()
	_, _ = io.WriteString(sum, about+"\x00"+path+"\x00"+from)
	d.hashes = append(d.hashes, sum)
}

func statusOf(about []string) string {
	switch status := about[4][0]; {
	case status == 'A':
		return "added"
	case status == 'D':
		return "deleted"
	case status == 'R':
		return "renamed"
	case status == 'M' && about[0][1:] != about[1]: // unless there are line counts
		return "mode"
	}
	return "modified"
}

// setNumbers sets how many lines of a file differ, from --numstat.
func setNumbers(f *wire.ChangedFile, added, removed string) {
	if f.Status == "mode" && (added != "0" || removed != "0") {
		f.Status = "modified"
	}
	if f.Binary = added == "-"; f.Binary {
		return
	}
	a, _ := strconv.Atoi(added)
	r, _ := strconv.Atoi(removed)
	f.Added, f.Removed = &a, &r
}

// readText reads the text, which has one part per file, or two if a file's type changed.
func (d *diff) readText(out *bufio.Reader) error {
	part, all := -1, 0
	var header, text []byte
	size, begins, skips := 0, true, false
	defer func() {
		for i, sum := range d.hashes {
			d.files[i].ID = hex.EncodeToString(sum.Sum(nil)[:8])
		}
	}()
	for all <= maxRead {
		line, err := out.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		isHeader := begins && bytes.HasPrefix(line, []byte("diff --git "))
		if isHeader && !bytes.Equal(line, header) || errors.Is(err, io.EOF) {
			if part >= 0 {
				d.end(part, text, size)
			}
			if part++; errors.Is(err, io.EOF) || part >= len(d.parts) {
				return nil
			}
			header, text, size = append(header[:0], line...), text[:0], 0
		}
		if begins {
			skips = bytes.HasPrefix(line, []byte("* Unmerged path "))
		}
		if all += len(line); !skips && part >= 0 {
			if size += len(line); size <= maxDiff+len(line) {
				text = append(text, line...)
			}
			if at := d.parts[part]; at >= 0 && !(begins && bytes.HasPrefix(line, []byte("index "))) {
				d.hashes[at].Write(line)
			}
		}
		begins = err == nil
	}
	d.end(part, text, max(size, maxDiff+1)) // it goes on
	for _, at := range d.parts[part+1:] {
		if d.cut = true; at >= 0 {
			d.files[at].Cut = true
		}
	}
	return git.ErrEnough
}

// end adds a part of the text, if there is room for it; of a single file it adds the beginning.
func (d *diff) end(part int, content []byte, size int) {
	at := d.parts[part]
	if at < 0 {
		d.cut = d.cut || d.only == ""
		return
	}
	f := &d.files[at]
	f.Bytes = size
	text := strings.ToValidUTF8(string(content), "\ufffd")
	isTooLong := func() bool {
		return d.text.Len()+len(text) > maxDiff || d.encoded+encodedSize(text) > maxDiff*3/2
	}
	if size > maxDiff || isTooLong() {
		d.cut = true
		if f.Cut = d.only == ""; f.Cut {
			return
		}
		for text = domain.CutBytes(text, maxDiff); isTooLong(); {
			text = domain.CutBytes(text, len(text)/2)
		}
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	d.text.WriteString(text)
	d.encoded += encodedSize(text)
}

// encodedSize estimates the length of a text in JSON, where a control character takes six bytes.
func encodedSize(text string) int {
	size := len(text)
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\n' && c != '\t' {
			size += 5
		}
	}
	return size
}
