package config

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"switchyard/internal/domain"
	"switchyard/internal/files"
)

// document is the content of a configuration file. It is read from the syntax tree, which has the line of every key.
type document struct {
	settings map[string]input // by key
	projects []domain.Project
	prices   map[string]domain.Price // of models

	path    string
	known   []setting
	data    []byte
	line    int // of the key at offset, the last one passed
	offset  uint32
	entries []map[string]input // of [[projects]]: where each is, by "", and the settings in it, by key
}

// readFile reads the file at path. It returns an error for anything but known settings and [[projects]].
func readFile(path string, known []setting) (*document, error) {
	data, err := files.ReadText(path, files.Large)
	if err != nil {
		return nil, err
	}
	d := &document{path: path, known: known, settings: map[string]input{}, data: data, line: 1}
	return d, d.read()
}

func (d *document) read() error {
	var all map[string]any
	if err := toml.Unmarshal(d.data, &all); err != nil { // finds duplicate keys, which the walk does not
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := at.Position()
			return fmt.Errorf("%s:%d: %s", d.path, line, strings.TrimPrefix(at.Error(), "toml: "))
		}
		return fmt.Errorf("%s: %w", d.path, err)
	}
	var parser unstable.Parser
	parser.Reset(d.data)
	prefix := ""
	for parser.NextExpression() {
		node := parser.Expression()
		if node.Kind == unstable.KeyValue {
			if err := d.keyValue(prefix, node); err != nil {
				return err
			}
			continue
		}
		var at input
		prefix, at = d.key("", node)
		if err := d.table(prefix, at, node.Kind); err != nil {
			return err
		}
	}
	if err := parser.Error(); err != nil {
		return fmt.Errorf("%s: %w", d.path, err)
	}
	return d.checkProjects()
}

// key returns the full key of a node, and an input with its source.
func (d *document) key(prefix string, node *unstable.Node) (string, input) {
	for part := node.Key(); part.Next(); {
		at := part.Node().Raw.Offset
		d.line += bytes.Count(d.data[d.offset:at], []byte("\n"))
		d.offset = at
		name := string(part.Node().Data)
		if !bareKey.MatchString(name) {
			name = strconv.Quote(name)
		}
		prefix = strings.TrimPrefix(prefix+"."+name, ".")
	}
	return prefix, input{source: fmt.Sprintf("%s:%d: %s", d.path, d.line, prefix)}
}

var bareKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

var sections = []string{
	"gateway", "sign_in", "login", "questions", "bot", "metrics", "notifications", "costs", "prices",
}

var projectKeys = []string{"projects.name", "projects.url"}

func (d *document) table(key string, at input, kind unstable.Kind) error {
	switch {
	case key == "projects" && kind == unstable.ArrayTable:
		d.entries = append(d.entries, map[string]input{"": at})
	case key == "projects":
		return at.fail(errors.New("must be written [[projects]]"))
	case slices.Contains(sections, key) && kind == unstable.ArrayTable:
		return at.fail(fmt.Errorf("must be written [%s]", key))
	case slices.Contains(sections, key), strings.HasPrefix(key, prices) && kind == unstable.Table:
	case slices.Contains(projectKeys, key) || d.find(key) != nil:
		return at.fail(errors.New("must be a value, not a table"))
	default:
		return at.fail(d.unknown(key))
	}
	return nil
}

func (d *document) keyValue(prefix string, node *unstable.Node) error {
	key, at := d.key(prefix, node)
	value := node.Value()
	first := value.Child()
	switch {
	case value.Kind == unstable.InlineTable:
		return d.inlineTable(key, at, unstable.Table, value)
	case value.Kind == unstable.Array && (key == "projects" || first.Valid() && first.Kind == unstable.InlineTable):
		for element := value.Children(); element.Next(); {
			if element.Node().Kind != unstable.InlineTable {
				return at.fail(errors.New("must be tables"))
			}
			if err := d.inlineTable(key, at, unstable.ArrayTable, element.Node()); err != nil {
				return err
			}
		}
		return nil
	}
	return d.leaf(key, at, value)
}

func (d *document) inlineTable(key string, at input, kind unstable.Kind, node *unstable.Node) error {
	if err := d.table(key, at, kind); err != nil {
		return err
	}
	for pair := node.Children(); pair.Next(); {
		if err := d.keyValue(key, pair.Node()); err != nil {
			return err
		}
	}
	return nil
}

func (d *document) leaf(key string, at input, value *unstable.Node) (err error) {
	s, settings := d.find(key), d.settings
	switch {
	case slices.Contains(sections, key) || key == "projects":
		return at.fail(errors.New("must be a table"))
	case strings.HasPrefix(key, prices):
		return d.price(key, at, value)
	case s == nil && !slices.Contains(projectKeys, key):
		return at.fail(d.unknown(key))
	case s == nil && len(d.entries) == 0:
		return at.fail(errors.New("must be below [[projects]]"))
	case s == nil:
		s, settings = &setting{}, d.entries[len(d.entries)-1]
	}
	if at.values, err = s.kind.values(value); err != nil {
		return at.fail(err)
	}
	settings[key] = at
	return nil
}

// values returns the values of a setting as they are written in the file.
func (k kind) values(value *unstable.Node) ([]string, error) {
	isNumber := value.Kind == unstable.Integer || value.Kind == unstable.Float
	switch {
	case k.list():
		values, isStrings := []string{}, value.Kind == unstable.Array
		for element := value.Children(); isStrings && element.Next(); {
			isStrings = element.Node().Kind == unstable.String
			values = append(values, string(element.Node().Data))
		}
		if !isStrings {
			return nil, errors.New("must be an array of strings")
		}
		return values, nil
	case k == boolKind:
		if value.Kind != unstable.Bool {
			return nil, errors.New("must be true or false")
		}
	case k == numberKind:
		if !isNumber {
			return nil, errors.New("must be a number")
		}
	case isNumber && k == zeroKind && string(value.Data) == "0":
	case value.Kind != unstable.String:
		return nil, errors.New("must be a string")
	}
	return []string{string(value.Data)}, nil
}

func (d *document) unknown(key string) error {
	names := append([]string{"projects"}, sections...)
	for _, s := range d.known {
		names = append(names, s.key)
	}
	return errors.New("is not a known key" + DidYouMean(key, "", names))
}

func (d *document) find(key string) *setting {
	i := slices.IndexFunc(d.known, func(s setting) bool { return s.key == key })
	if i < 0 {
		return nil
	}
	return &d.known[i]
}

func (d *document) checkProjects() error {
	seen := map[string]bool{}
	for _, entry := range d.entries {
		for _, key := range projectKeys {
			if entry[key].values == nil {
				return entry[""].fail(errors.New(strings.TrimPrefix(key, "projects.") + " is missing"))
			}
		}
		project, err := domain.NewProject(entry["projects.name"].values[0], entry["projects.url"].values[0])
		if err != nil {
			field, reason, _ := strings.Cut(domain.MessageOf(err), ": ")
			return entry["projects."+field].fail(errors.New(reason))
		}
		if seen[project.Name] {
			return entry["projects.name"].fail(fmt.Errorf("project %q is listed twice", project.Name))
		}
		seen[project.Name] = true
		d.projects = append(d.projects, project)
	}
	return nil
}
