package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"switchyard/internal/domain"
	"switchyard/internal/files"
)

// document is the content of a configuration file.
type document struct {
	settings map[string]given // by key
	projects []domain.Project
}

// reader walks the syntax tree of a file, which has the line of every key.
type reader struct {
	path    string
	known   []setting
	parser  unstable.Parser
	out     document
	entries []projectEntry
}

// projectEntry is one of [[projects]]. A missing field has the table as its source.
type projectEntry struct{ name, url given }

// readFile reads the file at path. It returns an error for anything but known settings and [[projects]].
func readFile(path string, known []setting) (*document, error) {
	data, err := files.Read(path)
	if err != nil {
		return nil, err
	}
	r := &reader{path: path, known: known}
	r.out.settings = map[string]given{}
	if err := r.read(data); err != nil {
		return nil, err
	}
	return &r.out, nil
}

func (r *reader) read(data []byte) error {
	var all map[string]any
	if err := toml.Unmarshal(data, &all); err != nil { // finds duplicate keys, which the walk does not
		var at *toml.DecodeError
		if errors.As(err, &at) {
			line, _ := at.Position()
			return fmt.Errorf("%s:%d: %s", r.path, line, strings.TrimPrefix(at.Error(), "toml: "))
		}
		return fmt.Errorf("%s: %w", r.path, err)
	}
	r.parser.Reset(data)
	prefix := ""
	for r.parser.NextExpression() {
		node := r.parser.Expression()
		if node.Kind == unstable.KeyValue {
			if err := r.keyValue(prefix, node); err != nil {
				return err
			}
			continue
		}
		var at given
		prefix, at = r.key("", node)
		if err := r.table(prefix, at, node.Kind); err != nil {
			return err
		}
	}
	if err := r.parser.Error(); err != nil {
		return fmt.Errorf("%s: %w", r.path, err)
	}
	return r.checkProjects()
}

// filePlace is a source in a file. Its line is computed only when an error shows it.
type filePlace struct {
	reader *reader
	at     unstable.Range
	key    string
}

func (p filePlace) String() string {
	return fmt.Sprintf("%s:%d: %s", p.reader.path, p.reader.parser.Shape(p.at).Start.Line, p.key)
}

// key returns the full key of a node, and a given with its source.
func (r *reader) key(prefix string, node *unstable.Node) (string, given) {
	var at unstable.Range
	for part := node.Key(); part.Next(); {
		at = part.Node().Raw
		name := string(part.Node().Data)
		if !bareKey.MatchString(name) {
			name = strconv.Quote(name)
		}
		prefix = strings.TrimPrefix(prefix+"."+name, ".")
	}
	return prefix, given{source: filePlace{r, at, prefix}}
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
