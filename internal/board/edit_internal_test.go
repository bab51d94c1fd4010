//go:build unix

package board

import (
	"errors"
	"strings"
	"testing"
)

func TestOnlyTheTouchedKeysOfFrontMatterChange(t *testing.T) {
	block := []setting{{"blocked", "true"}, {"blocked_reason", `"a: b"`}}
	unblock := []setting{{"blocked", ""}, {"blocked_reason", ""}}
	for name, test := range map[string]struct {
		content  string
		settings []setting
		want     string // "" for errNotEditable
	}{
		"no front matter":       {"# Title\ntext", block, "---\nblocked: true\nblocked_reason: \"a: b\"\n---\n# Title\ntext"},
		"nothing at all":        {"", block, "---\nblocked: true\nblocked_reason: \"a: b\"\n---\n"},
		"no front matter, CRLF": {"# Title\r\ntext\r\n", []setting{{"a", "1"}}, "---\r\na: 1\r\n---\r\n# Title\r\ntext\r\n"},
		"empty front matter":    {"---\n---\ntext\n", []setting{{"a", "1"}}, "---\na: 1\n---\ntext\n"},
		"only a comment":        {"---\n# c\n---\ntext\n", []setting{{"a", "1"}}, "---\n# c\na: 1\n---\ntext\n"},
		"new keys": {
			"--- \r\nname: x # name\r\n\r\n# end\r\n---\t\r\ntext\r\n\r\n", block,
			"--- \r\nname: x # name\r\nblocked: true\r\nblocked_reason: \"a: b\"\r\n\r\n# end\r\n---\t\r\ntext\r\n\r\n",
		},
		"changed values, comments kept": {
			"---\n# one\nblocked:   no   # why  \n# two\nname: 'x'\nblocked_reason: \"old # reason\" # three\n---\n", block,
			"---\n# one\nblocked:   true   # why  \n# two\nname: 'x'\nblocked_reason: \"a: b\" # three\n---\n",
		},
		"removed keys, comments between kept": {
			"---\n# one\nblocked: true # why\n# two\nname: x\nblocked_reason: old\n---\nbody\n", unblock,
			"---\n# one\n# two\nname: x\n---\nbody\n",
		},
		"block scalars": {
			"---\nblocked_reason: |\n  one\n\n  # no comment\n  three\n\n# comment\nblocked: >-\n  x\n  y\nname: x\n---\n", block,
			"---\nblocked_reason: \"a: b\"\n\n# comment\nblocked: true\nname: x\n---\n",
		},
		"removed block scalars": {
			"---\nname: x\nblocked_reason: |+\n  one\n  # no comment\n\nblocked: true\n---\n", unblock,
			"---\nname: x\n\n---\n",
		},
		"values of several lines": {
			"---\nblocked: \"one\n  two\" # c\nblocked_reason: one\n  two\n  three\nlist:\n- a\n- b\n---\n", block,
			"---\nblocked: true # c\nblocked_reason: \"a: b\"\nlist:\n- a\n- b\n---\n",
		},
		"sequences and mappings": {
			"---\nblocked:\n- a\n- b\nname: x\nblocked_reason:\n  a: b\n  # c\n  d: e\n---\n", unblock,
			"---\nname: x\n---\n",
		},
		"values that are missing": {"---\nblocked:\nblocked_reason: # none\n---\n", block, "---\nblocked: true\nblocked_reason: \"a: b\" # none\n---\n"},
		"indented mapping":        {"---\n  name: x\n  blocked: no\n---\n", block, "---\n  name: x\n  blocked: true\n  blocked_reason: \"a: b\"\n---\n"},
		"quoted keys":             {"---\n\"blocked\": no\n? blocked_reason\n: old\n---\n", block, "---\n\"blocked\": true\n? blocked_reason\n: \"a: b\"\n---\n"},
		"characters of any width": {"---\nnäme: ä # ö\nü: 1\nblocked: ß # €\n---\n", []setting{{"blocked", "true"}}, "---\nnäme: ä # ö\nü: 1\nblocked: true # €\n---\n"},
		"tags and anchors":        {"---\nblocked: !!str &a yes\nname: x\n---\n", []setting{{"blocked", "true"}}, "---\nblocked: true\nname: x\n---\n"},
		"a last text that keeps its line breaks": {
			"---\nname: |+\n  x\n\n---\n", []setting{{"a", "1"}}, "---\nname: |+\n  x\n\na: 1\n---\n",
		},
		"other line breaks":                  {"---\nname: \"a\u2028b\"\nblocked: no\n---\n", []setting{{"blocked", "true"}}, "---\nname: \"a\u2028b\"\nblocked: true\n---\n"},
		"the only key removed":               {"---\nblocked: x\n---\nbody", unblock, "---\n---\nbody"},
		"a key that is an anchor of another": {"---\nblocked: &a x\nname: *a\n---\n", unblock, ""},
		"flow style":                         {"---\n{name: x, blocked: no}\n---\n", block, ""},
		"end of a document":                  {"---\nname: x\n...\n---\n", []setting{{"a", "1"}}, "---\nname: x\na: 1\n...\n---\n"},
		"null":                               {"---\nnull\n---\n", []setting{{"a", "1"}}, ""},
		"long lines":                         {"---\nname: x\n---\n" + strings.Repeat("y", 1<<19), []setting{{"a", "1"}}, "---\nname: x\na: 1\n---\n" + strings.Repeat("y", 1<<19)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := edit([]byte(test.content), test.settings)
			if string(got) != test.want || (test.want == "") != errors.Is(err, errNotEditable) {
				t.Errorf("got %.300q, %v, want %.300q", got, err, test.want)
			}
		})
	}
}

func TestUnreadableFrontMatterIsNotEdited(t *testing.T) {
	for _, content := range []string{"---\nname: x\n", "---\na: [\n---\n", "---\na: 1\na: 2\n---\n", "---\n- a\n---\n"} {
		if got, err := edit([]byte(content), []setting{{"a", "1"}}); err == nil {
			t.Errorf("%q becomes %q", content, got)
		}
	}
}

func TestTextsAreWrittenAsYAMLStrings(t *testing.T) {
	for text, want := range map[string]string{
		"Log in": "Log in", "Über 9 (neu)": "Über 9 (neu)", "": `""`, "true": `"true"`, "yes": `"yes"`, "No": `"No"`, "n": `"n"`, "null": `"null"`,
		"12": `"12"`, "a: b": `"a: b"`, " a": `" a"`, "a ": `"a "`, "a #b": `"a #b"`, "---": `"---"`, "a\nb": `"a\nb"`, "\x00\x7f": `"\x00\x7f"`,
		`"'\`: `"\"'\\"`, "\u2028😀": `"\u2028😀"`, "2_x": `"2_x"`, "off": `"off"`,
	} {
		if got := yamlString(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
		content, err := edit([]byte("---\nb: 1\n---\n"), []setting{{"a", yamlString(text)}})
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		front, err := parseFrontMatter(splitDocument(content))
		if node := front.get("a"); err != nil || node.Value != text || node.ShortTag() != "!!str" {
			t.Errorf("%q is read as %q, %v", text, node.Value, err)
		}
	}
}

// FuzzEdit checks that an edited file has the intended settings and is otherwise unchanged.
func FuzzEdit(f *testing.F) {
	for _, seed := range []string{"", "text", "---\nblocked: x # c\nname: |\n  a\n---\n", "---\r\na: [b,\r\n c]\r\n---\r\n", "---\n? a\n: b\n---\n", "---\n{a: b}\n---"} {
		f.Add([]byte(seed), "reason")
	}
	for _, head := range hostileFrontMatter() {
		f.Add([]byte("---\n"+head+"\n---\n"), "x")
	}
	f.Fuzz(func(t *testing.T, content []byte, reason string) {
		before := splitDocument(content)
		edited, err := edit(content, []setting{{"blocked", "true"}, {"blocked_reason", yamlString(strings.ToValidUTF8(reason, ""))}})
		if err != nil {
			return
		}
		after := splitDocument(edited)
		if string(after.body) != string(before.body) {
			t.Errorf("the body %q became %q", before.body, after.body)
		}
		if got := parse(edited); got.state != whole || got.blocked == "" {
			t.Errorf("%q says %+v", edited, got)
		}
	})
}
