package markdown_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"switchyard/internal/markdown"
)

const (
	longest  = 256 << 10 // bytes of a story's text
	mostHTML = 1 << 20
	plainBeg = "<p><em>This text is too long or too intricate to be formatted: it is shown as it is"
)

func isPlain(html string) bool { return strings.HasPrefix(html, plainBeg) }

// bounded renders a text and checks what that takes.
func bounded(t *testing.T, name, source string) (html string) {
	t.Helper()
	const mostMemory, mostTime = 64 << 20, 20 * time.Second // 0.3 s on an idle machine
	defer debug.SetGCPercent(debug.SetGCPercent(50))        // so that the heap is not much larger than what is in use
	debug.FreeOSMemory()
	before := heap()
	began := time.Now()
	html, _ = markdown.HTML(source, "")
	if took, memory := time.Since(began), heap()-before; took > mostTime || memory > mostMemory {
		t.Errorf("%s: %v, %d MiB", name, took, memory>>20)
	}
	if most := mostHTML + 512; len(html) > most && !isPlain(html) {
		t.Errorf("%s: %d bytes of HTML", name, len(html))
	}
	return html
}

// heap returns the size of the heap, with what is no longer in use but has not been given back yet.
func heap() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapSys - stats.HeapReleased)
}

func TestATextThatMakesTooMuchHTMLIsShownAsItIs(t *testing.T) {
	const n = 4000
	for name, source := range map[string]string{
		"table":        strings.Repeat("|a", n) + "|\n" + strings.Repeat("|-", n) + "|\n" + strings.Repeat("b\n", n),
		"many narrow":  strings.Repeat("|a|b|c|d|e|f|g|h\n|-|-|-|-|-|-|-|-\n"+strings.Repeat("b\n", 100)+"\n", 1000),
		"definition":   "[a]: http://x/" + strings.Repeat("y", 1800) + "\n\n" + strings.Repeat("[a]\n\n", 1000),
		"title":        "[a]: http://x '" + strings.Repeat("y", 125<<10) + "'\n\n" + strings.Repeat("[a] ", 100),
		"wrong scheme": "[a]: javascript:" + strings.Repeat("y", 125<<10) + "\n\n" + strings.Repeat("[a] ", 25<<10),
		"bare links":   strings.Repeat("http://a.b\n\n", 21000),
		"long":         strings.Repeat("a\n", 200<<10),
	} {
		html := bounded(t, name, source)
		cut := len(source) > longest
		if !isPlain(html) || !strings.Contains(html, "</p>\n<pre tabindex=\"0\">"+source[:100]) || cut != strings.Contains(html, "ends after 256 KiB") {
			t.Errorf("%s: %.200s", name, html)
		}
		if _, shown, _ := strings.Cut(html, "<pre tabindex=\"0\">"); len(strings.TrimSuffix(shown, "</pre>\n")) != min(len(source), longest) {
			t.Errorf("%s: %d bytes of %d are shown", name, len(shown), len(source))
		}
	}
}

// TestLongHonestTextIsRendered: what people write is far from the limits.
func TestLongHonestTextIsRendered(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(files) < 5 {
		t.Fatal(files, err)
	}
	var all strings.Builder
	for _, name := range append(files, "../../README.md", "../../CHANGELOG.md", "../../CONTRIBUTING.md") {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	text := all.String()
	for len(text) < longest {
		text += text
	}
	if html := bounded(t, "documents", text[:longest]); isPlain(html) {
		t.Errorf("%d bytes of documents are not rendered", longest)
	}
	table := "|a|b|c|d|e|f\n|-|-|-|-|-|-\n" + strings.Repeat("|1|2|`3`|*4*|5|6\n", 2000)
	if html := bounded(t, "table", table); isPlain(html) {
		t.Error("a table of 2,000 rows is not rendered")
	}
}

// TestHostileTextIsRenderedSoon: constructs for which the parser takes more than linear time or memory.
func TestHostileTextIsRenderedSoon(t *testing.T) {
	size := longest
	if testing.Short() {
		size /= 8
	}
	for _, piece := range []string{
		">", "> ", "- ", "1. ", "* a\n  ", "[", "![", "[a](", "](", "*a ", "_a*", "`", "`a", "<", "<a ", "&amp;", "|",
		"|a|\n|-|\n", "\\", "~", "~~a", "- [ ] ", "[a]: b\n", "[a] ", "http://", "www.a.b/(", "a@b.", "<!--", "# ", "\t",
		"  ", "\x00", "***", "a\n===\n", "[^1]", "[^1]: a\n", "<![CDATA[", "<?", "*_", "**a*", "[a]: b\n\n", "[a](\n\n",
		strings.Repeat("_a*", 450) + "\n\n", strings.Repeat("[a](", 900) + "\n\n", strings.Repeat("> ", 90) + "a\n",
		"# _a*", "> _a*", "- _a*", "|_a*", "    _a*", "```_a*", "- ```\n_a*", "```\n```\n_a*", "x\n    _a*", "<p>\n\n_a*",
		"[a]: b\n_a*", "_a*\n===\n", "|a|\n|-|\n|_a*", "a\n", "a\n\n", "a\\\n", "- \n", "- a\n", "- a\n\n  b\n", "#\n",
		"```\n", "*a*\n\n", "~a~\n\n", "`a`\n\n", "a@b.c\n\n", "http://a.b\n", "![](http://a)\n\n", "[a]: b 'c\n",
		"[a]:\nb\n", "`\\|`|", "&\n\n", "\"", "&nbsp;&#0;", "- - a\n", "- a\n - b\n  - c\n   - d\n", "*a**b_",
	} {
		// The beginning of a block occurs once; the last delimiters of emphasis are repeated.
		if head, ok := strings.CutSuffix(piece, "_a*"); ok && head != "" {
			bounded(t, piece, head+strings.Repeat("_a*", (size-100)/3))
			continue
		}
		bounded(t, fmt.Sprintf("%.30q", piece), strings.Repeat(piece, size/len(piece)))
	}
	fill := func(head, piece string) string { return head + strings.Repeat(piece, (size-len(head))/len(piece)) }
	for _, n := range []int{30, 1000} {
		repeat := func(piece string) string { return strings.Repeat(piece, n) }
		for name, source := range map[string]string{
			"table":            repeat("|a") + "|\n" + repeat("|-") + "|\n" + repeat("b\n"),
			"tables":           fill("", strings.Repeat("|a", 8)+"\n"+strings.Repeat("|-", 8)+"\n"+repeat("b\n")+"\n"),
			"escaped pipes":    "a|b\n-|-\n" + repeat("`\\|`|\n"),
			"list":             fill(repeat("- ")+"a\n", "\n"),
			"quote":            fill(repeat("> ")+"a\n", "b\n"),
			"quote and list":   fill(repeat("> - ")+"a\n", "> b\n"),
			"list in lines":    fill("", repeat(" ")+"- a\n"),
			"references":       fill("[a]: http://x/"+repeat("y")+"\n\n", "[a]\n\n"),
			"far from the web": fill("[a]: javascript:"+repeat("y")+"\n\n", "[a]\n\n"),
			"titles":           fill("[a]: http://x '"+repeat("y")+"'\n\n", "[a] "),
			"definitions":      fill("", repeat("[a]: b\n")+"\n"),
			"emphasis":         fill("", repeat("_a*")+"\n\n"),
			"strong":           fill("", repeat("**a*")+"\n\n"),
			"nested emphasis":  fill("", repeat("*(")+repeat(")*")+"\n\n"),
			"links":            fill("", repeat("[a](b")+"\n\n"),
			"pictures":         fill("", repeat("![")+repeat("](http://b)")+"\n\n"),
			"code":             fill("", "`"+repeat("``a")+"\n\n"),
			"entities":         fill("", repeat("&quot;")+"\n\n"),
		} {
			bounded(t, fmt.Sprint(name, " ", n), source[:min(len(source), size)])
		}
	}
}

// FuzzWhatATextTakes looks for a text that grows: its pieces are repeated.
func FuzzWhatATextTakes(f *testing.F) {
	f.Add("", "_a*", "", 1, 9)
	f.Add("|a|b|\n|-|-|\n", "b\n", "", 300, 100)
	f.Add("[a]: http://xy\n\n", "[a] ", "", 1, 300)
	f.Add("> - ", "a\n\n", "", 100, 100)
	f.Add("`", "a", "<!--", 10, 10)
	f.Fuzz(func(t *testing.T, head, piece, tail string, heads, pieces int) {
		if len(head)+len(piece)+len(tail) == 0 || heads < 0 || pieces < 0 {
			return
		}
		part := strings.Repeat(head, min(heads, longest/8/(1+len(head)))) + strings.Repeat(piece, min(pieces, longest/8/(1+len(piece)))) + tail
		if part != "" && len(part) <= longest {
			bounded(t, "repeated", strings.Repeat(part, longest/len(part)))
		}
	})
}
