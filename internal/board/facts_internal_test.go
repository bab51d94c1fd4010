//go:build unix

package board

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWhatAFileSays(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    facts
	}{
		"nothing":                     {"", facts{state: torn}},
		"white space":                 {" \n\t\n", facts{state: torn}},
		"no front matter, no heading": {"just text\n", facts{}},
		"name":                        {"---\nname: Log in\n---\n# Other\n", facts{name: "Log in"}},
		"quoted name":                 {"---\nname: \"a: b\"\n---\n", facts{name: "a: b"}},
		"number as name":              {"---\nname: 42\n---\n", facts{name: "42"}},
		"null name":                   {"---\nname: null\n---\n# Heading\n", facts{name: "Heading"}},
		"empty name":                  {"---\nname: ''\n---\n# Heading\n", facts{name: "Heading"}},
		"list as name":                {"---\nname: [a]\n---\n", facts{}},
		"name by alias":               {"---\nother: &n Log in\nname: *n\n---\n", facts{name: "Log in"}},
		"other keys of any kind":      {"---\nname: x\ndepends: {a: [1, 2]}\nretry_count: 3\n---\n", facts{name: "x"}},
		"windows line ends":           {"---\r\nname: x\r\n---\r\n# y\r\n", facts{name: "x"}},
		"white space after the marks": {"--- \nname: x\n---\t\n", facts{name: "x"}},
		"no line end at the end":      {"---\nname: x\n---", facts{name: "x"}},
		"empty front matter":          {"---\n---\n# Heading\n", facts{name: "Heading"}},
		"only a comment":              {"---\n# name: x\n---\n# Heading\n", facts{name: "Heading"}},
		"not closed":                  {"---\nname: x\n", facts{state: torn}},
		"only opened":                 {"---", facts{state: torn}},
		"no YAML":                     {"---\nname: [\n---\n# Heading\n", facts{name: "Heading", state: torn}},
		"a scalar":                    {"---\nsome text\n---\n# Heading\n", facts{name: "Heading", state: torn}},
		"a key twice":                 {"---\nname: a\nname: b\n---\n", facts{state: torn}},
		"too long":                    {"---\nname: x\n#" + strings.Repeat("x", maxFrontMatter) + "\n---\n", facts{state: torn}},

		"blocked":                          {"---\nblocked: true\n---\n", facts{blocked: "blocked"}},
		"blocked with a reason":            {"---\nblocked: true\nblocked_reason: no key\n---\n", facts{blocked: "no key"}},
		"blocked with a null reason":       {"---\nblocked: true\nblocked_reason: ~\n---\n", facts{blocked: "blocked"}},
		"blocked by a string":              {"---\nblocked: 'waiting: key'\nblocked_reason: other\n---\n", facts{blocked: "waiting: key"}},
		"blocked by a number":              {"---\nblocked: 12\n---\n", facts{blocked: "12"}},
		"blocked by a quoted true":         {"---\nblocked: 'yes'\n---\n", facts{blocked: "yes"}},
		"blocked: yes":                     {"---\nblocked: yes\n---\n", facts{blocked: "blocked"}},
		"blocked: no":                      {"---\nblocked: no\n---\n", facts{}},
		"not blocked":                      {"---\nblocked: false\nblocked_reason: old\n---\n", facts{}},
		"blocked by nothing":               {"---\nblocked:\n---\n", facts{}},
		"a reason alone":                   {"---\nblocked_reason: old\n---\n", facts{}},
		"merge failure":                    {"---\nmerge_failure: true\n---\n", facts{mergeFailure: "merge failed"}},
		"merge failure with a reason":      {"---\nmerge_failure: conflict in go.mod\n---\n", facts{mergeFailure: "conflict in go.mod"}},
		"merge failure in several lines":   {"---\nmerge_failure: |\n  one\n  two\n---\n", facts{mergeFailure: "one\ntwo"}},
		"no merge failure":                 {"---\nmerge_failure: false\n---\n", facts{}},
		"both":                             {"---\nblocked: a\nmerge_failure: b\n---\n", facts{blocked: "a", mergeFailure: "b"}},
		"a mark within a longer line":      {"---\nname: a\n--- b\n---\n", facts{name: "a"}},
		"first heading":                    {"text\n\n## Log in\n# Other\n", facts{name: "Log in"}},
		"closed heading":                   {"# Log in ##\n", facts{name: "Log in"}},
		"heading with a sharp":             {"# Port C# code\n", facts{name: "Port C# code"}},
		"heading that ends with a sharp":   {"# Port to C#\n", facts{name: "Port to C#"}},
		"underlined heading":               {"Log in\n======\n", facts{name: "Log in"}},
		"heading underlined with hyphens":  {"\nLog in\n---\n", facts{name: "Log in"}},
		"no heading: seven sharps":         {"####### x\n", facts{}},
		"no heading: a tag":                {"#tag\n", facts{}},
		"no heading: code":                 {"```\n# comment\n```\n# Real\n", facts{name: "Real"}},
		"no heading: indented":             {"    # comment\n# Real\n", facts{name: "Real"}},
		"no heading: code within tildes":   {"~~~~ sh\n~~~\n# comment\n~~~~\n# Real\n", facts{name: "Real"}},
		"no heading: an empty one":         {"#\n# Real\n", facts{name: "Real"}},
		"no heading: a line across":        {"\n---\n# Real\n", facts{name: "Real"}},
		"bytes that are not text":          {"# a\xffb\n", facts{name: "a\ufffdb"}},
		"a very long name is cut":          {"# " + strings.Repeat("ä", 2000), facts{name: strings.Repeat("ä", maxText-1) + "…"}},
		"a name of the greatest length":    {"# " + strings.Repeat("ä", maxText), facts{name: strings.Repeat("ä", maxText)}},
		"front matter with nothing behind": {"---\nblocked: true\nname: x\n---\n", facts{name: "x", blocked: "blocked"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := parse([]byte(test.content))
			if empty := strings.TrimSpace(test.content) == ""; (got.fault != "") != (got.state == torn && !empty) {
				t.Errorf("its fault is %q", got.fault)
			}
			if got.fault = ""; got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestStagesAreOrderedByNumber(t *testing.T) {
	ordered := []string{"0_a", "1_a", "1_b", "2_a", "02_a", "10_a", "99999999999999999999999_a", "a"}
	for i, a := range ordered {
		for j, b := range ordered {
			if got := compareNumbered(a, b); a != "2_a" && a != "02_a" && b != "2_a" && b != "02_a" && got != sign(i-j) {
				t.Errorf("%s, %s: %d", a, b, got)
			}
		}
	}
}

func sign(n int) int { return min(1, max(-1, n)) }

func TestStageNames(t *testing.T) {
	for name, want := range map[string]bool{
		"1_backlog": true, "10_code_review": true, "2_in-work": true, "3_prüfung": true, "007_x": true,
		"backlog": false, "1backlog": false, "1_": false, "_x": false, "1_a b": false, "1_a.old": false, ".1_a": false, "x1_a": false, "1_\xff": false,
	} {
		if stageName.MatchString(name) != want {
			t.Errorf("%q: want %t", name, want)
		}
	}
}

// FuzzParse checks that parsing never panics, and that names and reasons are valid text of limited length.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"---\nname: Log in\nblocked: true\nblocked_reason: key\nmerge_failure: yes\n---\n# Heading\n",
		"---\na: &a [x]\nblocked: *a\nname: *a\n---\n", "---\n<<: {name: x}\n---\n", "---\n? [a]\n: b\n---\n",
		"---\nname: !!binary gIGC\n---\n", "---\n- a\n---\n", "```\n#\n", "a\n==", "---\nname: !!int x\nblocked: !foo y\n---\n",
	} {
		f.Add([]byte(seed))
	}
	for _, head := range hostileFrontMatter() {
		f.Add([]byte("---\n" + head + "\n---\n"))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		got := parse(content)
		for _, text := range []string{got.name, got.blocked, got.mergeFailure} {
			if !utf8.ValidString(text) || utf8.RuneCountInString(text) > maxText {
				t.Errorf("%q", text)
			}
		}
		if got.state != whole && (got.blocked != "" || got.mergeFailure != "") {
			t.Errorf("facts from a torn file: %+v", got)
		}
	})
}
