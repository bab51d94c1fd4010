package git

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// MaxBlob is the largest file that is read from a commit, in bytes.
const MaxBlob = 16 << 20

// Records runs git like Stream and passes its output on record by record, each valid until the next.
func (r Repository) Records(
	ctx context.Context, input io.Reader, delimiter byte, each func(record []byte) error, args ...string,
) error {
	return r.Stream(ctx, input, func(out *bufio.Reader) error {
		for {
			record, err := ReadRecord(out, delimiter)
			if record == nil || err != nil {
				return err
			}
			if err := each(record); err != nil {
				return err
			}
		}
	}, args...)
}

// ReadRecord reads up to the next delimiter, which it drops, and skips what exceeds MaxRecord. It returns nil at the
// end. The record is valid until the next call.
func ReadRecord(out *bufio.Reader, delimiter byte) ([]byte, error) {
	record, err := out.ReadSlice(delimiter)
	if errors.Is(err, bufio.ErrBufferFull) {
		record = bytes.Clone(record)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = out.ReadSlice(delimiter)
		}
	}
	if errors.Is(err, io.EOF) {
		if len(record) == 0 {
			return nil, nil
		}
		return record, nil
	}
	return bytes.TrimSuffix(record, []byte{delimiter}), err
}

// Blobs calls use with a function that reads blobs and returns nil for one that is missing or too large.
func (r Repository) Blobs(ctx context.Context, use func(read func(id string) []byte)) error {
	input, ask := io.Pipe()
	defer input.Close()
	return r.Stream(ctx, input, func(out *bufio.Reader) (err error) {
		defer ask.Close()
		use(func(id string) (content []byte) {
			if err == nil {
				content, err = readBlob(out, ask, id)
			}
			return content
		})
		return err
	}, "cat-file", "--batch")
}

func readBlob(out *bufio.Reader, ask io.Writer, id string) (content []byte, err error) {
	if _, err := fmt.Fprintln(ask, id); err != nil {
		return nil, err
	}
	header, err := ReadRecord(out, '\n')
	if header == nil {
		return nil, cmp.Or(err, io.ErrUnexpectedEOF)
	}
	fields := strings.Fields(string(header)) // id type size
	if len(fields) != 3 {                    // it is missing
		return nil, nil
	}
	size, _ := strconv.ParseInt(fields[2], 10, 64)
	if size <= MaxBlob {
		content = make([]byte, size)
		_, err = io.ReadFull(out, content)
	} else {
		_, err = io.CopyN(io.Discard, out, size)
	}
	_, skipped := out.Discard(1)
	return content, cmp.Or(err, skipped)
}
