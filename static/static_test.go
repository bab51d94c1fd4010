package static_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"switchyard/static"
)

func TestAnAddressCarriesTheHashOfItsContent(t *testing.T) {
	address := static.Path("app.css")
	file, ok := static.Lookup(address)
	if !ok || len(file.Content) == 0 || file.Type != "text/css; charset=utf-8" {
		t.Fatalf("%s: found %v, %d bytes, %s", address, ok, len(file.Content), file.Type)
	}
	for _, wrong := range []string{
		"/static/app.css",
		"/static/app.000000000000.css",
		strings.TrimPrefix(address, "/static"),
		"/static/../static.go",
		"/static/",
	} {
		if _, ok := static.Lookup(wrong); ok {
			t.Errorf("%s exists", wrong)
		}
	}
}

func TestTheCompressedFormIsTheSameContent(t *testing.T) {
	file, _ := static.Lookup(static.Path(static.Console))
	r, err := gzip.NewReader(bytes.NewReader(file.Compressed()))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(content, file.Content) {
		t.Fatalf("%d bytes, %v", len(content), err)
	}
}
