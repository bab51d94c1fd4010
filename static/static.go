// Package static holds the console's styles and scripts. Each is served under an address that carries a hash of its
// content, so that it may be cached for ever: a changed file has another address.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

// Prefix is the path below which the files are served.
const Prefix = "/static/"

//go:embed *.css icon*.svg *.png *.js vendor/*.js
var files embed.FS

type File struct {
	Path       string // its address: Prefix, name, hash, extension
	Type       string // its Content-Type
	Content    []byte
	Compressed func() []byte // Content in gzip's best compression, made at the first call
}

// loaded returns the files under their names and under their addresses, which begin with Prefix.
var loaded = sync.OnceValue(load)

// Console is the name of the scripts that every page needs, served as one file: in this order, and compressed together,
// they are a tenth smaller, and fetched by one request.
const Console = "console.js"

var consoleScripts = []string{
	"vendor/htmx-2.0.11.min.js", "vendor/idiomorph-0.8.0.min.js", "forms.js",
	"acknowledge.js", "live.js", "times.js", "keys.js", "copy.js", "palette.js",
}

var types = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
	".png": "image/png",
}

func load() map[string]File {
	all := map[string]File{}
	add := func(name string, content []byte) {
		file := newFile(path.Base(name), content)
		all[name], all[file.Path] = file, file
	}
	var console bytes.Buffer
	for _, name := range consoleScripts {
		console.Write(read(name))
		console.WriteString(";\n")
	}
	add(Console, console.Bytes())
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !slices.Contains(consoleScripts, name) {
			add(name, read(name))
		}
		return err
	})
	if err != nil {
		panic(err) // the embedded tree is part of the program
	}
	return all
}

func read(name string) []byte {
	content, err := files.ReadFile(name)
	if err != nil {
		panic(err) // the embedded tree is part of the program
	}
	if path.Dir(name) == "." && path.Ext(name) == ".js" {
		return withoutComments(content)
	}
	return content
}

// withoutComments leaves out a script's indentation and its lines of comment, which are a quarter of it on the wire.
// Our scripts have no text of several lines.
func withoutComments(script []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(script) {
		if line = bytes.TrimLeft(line, " \t"); !bytes.HasPrefix(line, []byte("//")) {
			b.Write(line)
		}
	}
	return b.Bytes()
}

func newFile(base string, content []byte) File {
	sum := sha256.Sum256(content)
	extension := path.Ext(base)
	return File{
		Path:       Prefix + strings.TrimSuffix(base, extension) + "." + hex.EncodeToString(sum[:6]) + extension,
		Type:       types[extension],
		Content:    content,
		Compressed: sync.OnceValue(func() []byte { return compress(content) }),
	}
}

func compress(content []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is a constant
	}
	_, _ = w.Write(content) // a buffer takes everything
	_ = w.Close()
	return b.Bytes()
}

// Path returns the address of the file with this name, such as "app.css". It panics for a name that is not embedded.
func Path(name string) string {
	file, ok := loaded()[name]
	if !ok {
		panic("static: no file " + name)
	}
	return file.Path
}

// Lookup returns the file with this address. One with an old or made-up hash does not exist.
func Lookup(address string) (File, bool) {
	file, ok := loaded()[address]
	return file, ok
}
