//go:build unix

package board

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// hostileFrontMatter returns front matter of the largest size that makes careless decoders take gigabytes or minutes.
func hostileFrontMatter() map[string]string {
	fill := func(unit string) string { return strings.Repeat(unit, (maxFrontMatter-1)/len(unit)) }
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
	for i := range 60 {
		bomb += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 8), i)
	}
	large := "a: &a " + strings.Repeat("x", maxFrontMatter/2) + "\n"
	return map[string]string{
		"equal keys":            fill("a: b\n"),
		"equal keys in a value": "a:\n" + fill(" b: c\n"),
		"nested sequences":      fill("["),
		"nested and closed":     strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"nested mappings":       fill("{a: "),
		"nested by indentation": nestedByIndentation(350),
		"nested keys":           fill("? "),
		"comments":              fill("- #\n"),
		"comments of keys":      fill("a: #\n"),
		"a bomb of aliases":     bomb,
		"aliases of a long one": large + "b: [" + strings.Repeat("*a, ", 8000) + "]\n",
		"an alias of itself":    "a: &a [*a, *a]\nb: &b {c: *b}\n",
		"merges":                "a: &a {b: c}\n" + fill("<<: *a\n")[:maxFrontMatter/2],
	}
}

func nestedByIndentation(levels int) string {
	var b strings.Builder
	for i := range levels {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

// 13,000 equal keys took a decoder gigabytes: the limit for each is 64 MiB in total, and far less than a second on an idle machine.
func TestHostileFrontMatterCostsLittle(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20))
	for name, head := range hostileFrontMatter() {
		t.Run(name, func(t *testing.T) {
			if len(head) > maxFrontMatter {
				t.Fatalf("%d bytes", len(head))
			}
			content := []byte("---\n" + head + "---\n# Heading\n")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			got := parse(content)
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			if got.state != torn || got.name != "Heading" {
				t.Errorf("it says %+v", got)
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<20 || took > time.Minute {
				t.Errorf("it takes %d MiB and %v", allocated>>20, took)
			}
		})
	}
}

func TestWhyFrontMatterCannotBeRead(t *testing.T) {
	for content, want := range map[string]string{
		"---\na: b\n": "the front matter is not closed",
		"---\n#" + strings.Repeat("x", math.MaxUint16+1) + "\n---\n": "the front matter is longer than 64 KiB",
		"---\n- a\n---\n":               "the front matter is not a mapping",
		"---\n? [a]\n: b\n---\n":        "the front matter has a key that is not a scalar",
		"---\na: 1\nb: 2\na: 3\n---\n":  "the key a is given twice",
		"---\na: &a [*a]\n---\n":        "the front matter is nested more than 100 levels deep",
		"---\na: [\n---\n":              "yaml: line 1: did not find expected node content",
		"---\na: {b: c, d: [e]}\n---\n": "<nil>",
		"---\n---\n":                    "<nil>",
		"---\nnull\n---\n":              "<nil>",
		"text":                          "<nil>",
	} {
		if _, err := parseFrontMatter(splitDocument([]byte(content))); fmt.Sprint(err) != want {
			t.Errorf("%.40q: %v, want %s", content, err, want)
		}
	}
}
