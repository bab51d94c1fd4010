package boardtools_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// boxes are pieces of lines that may be boxes.
var boxes = [][]string{
	{"", "", "", " ", "    ", "\t", "\u00a0", "\u3000", "\v", "> ", "\ufeff"},
	{"-", "-", "-", "*", "+", "1.", "12)", "123456789.", "1234567890.", "–", "a.", "--", "#"},
	{" ", " ", " ", "", "  ", "\t", "\u2003"},
	{
		"[ ]", "[ ]", "[x]", "[x]", "[X]", "[]", "[ x]", "[x ]", "[  ]", "[\t]", "[ x ]", "[~]", "[-]", "[é]", "[😀]", "[xx]",
		"[\u00a0]", "[\u00a0x]", "[", "[\\]]", "[✓]", "[✅]",
	},
	{" text", " text", " 1.1 `code`", "", "text", "(link)", "[ref]", " (no link)", "*", " \u2028", ": x", "]", "\tx"},
	{"\n", "\n", "\n", "\r\n", "\r", "\u2028", "\n\n", "\n```\n", "\n<!-- \n"},
}

func changes() map[string]string {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same lines in each run
	files := map[string]string{
		"openspec/config.yaml":                           "schema: spec-driven\n",
		"openspec/changes/ORDER.md":                      "- [ ] none\n",
		"openspec/changes/only-text/proposal.md":         "# Only text\n- [ ] none\n",
		"openspec/changes/only-specs/specs/a/spec.md":    "- [ ] none\n",
		"openspec/changes/blank/tasks.md":                " \n\n",
		"openspec/changes/no-end/tasks.md":               "- [x] one\n- [X] two",
		"openspec/changes/in-a-fence/tasks.md":           "```\n- [ ] one\n~~~\n- [x] two\n```\n> - [x] three\n",
		"openspec/changes/.hidden/tasks.md":              "- [ ] one\n",
		"openspec/changes/with space/tasks.md":           "- [ ] one\n",
		"openspec/changes/Ünïcode/tasks.md":              "- [ ] one\n",
		"openspec/changes/2026-01-02-dated/tasks.md":     "- [x] one\n",
		"openspec/changes/nested/sub/tasks.md":           "- [ ] one\n",
		"openspec/changes/mac/tasks.md":                  "- [ ] one\r- [x] two\r",
		"openspec/changes/bom/tasks.md":                  "\ufeff- [ ] one\n- [x] two\n",
		"openspec/changes/large/tasks.md":                strings.Repeat("- [ ] one\n- [x] two\n", 20_000),
		"openspec/changes/archive/2026-01-02-a/tasks.md": "- [ ] one\n",
	}
	for i := range 400 {
		var text strings.Builder
		for range 1 + random.IntN(8) {
			for _, piece := range boxes {
				text.WriteString(piece[random.IntN(len(piece))])
			}
		}
		files[fmt.Sprintf("openspec/changes/random-%03d/tasks.md", i)] = text.String()
	}
	return files
}

func TestChangesStandWhereOpenSpecSays(t *testing.T) {
	made := filepath.Join(t.TempDir(), "repository")
	write(t, made, changes())
	for i, dir := range append([]string{made}, boardsIn(t, "openspec")...) {
		var listed struct {
			Changes []struct {
				Name                       string
				CompletedTasks, TotalTasks int
				Status                     string
			}
		}
		list(t, tool(t, dir, "openspec", "list", "--json"), &listed)
		want := map[string]standing{}
		for _, c := range listed.Changes {
			s := standing{stage: "2_planned"}
			s.Done, s.Total = c.CompletedTasks, c.TotalTasks
			switch {
			case c.Status == "no-tasks":
				s.stage = "1_draft"
			case c.Status == "complete":
				s.stage = "4_done"
			case s.Done > 0:
				s.stage = "3_doing"
			}
			want[c.Name] = s
		}
		compare(t, want, standings(open(t, dir, "openspec"), "_archived"), []int{400, 1}[min(i, 1)], func(id string) string {
			text, _ := os.ReadFile(filepath.Join(dir, "openspec/changes", id, "tasks.md"))
			return fmt.Sprintf("%.300s", text)
		})
	}
}

func TestAChangeThatOpenSpecArchivesIsTheSameStory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repository")
	write(t, dir, map[string]string{
		"openspec/config.yaml":               "schema: spec-driven\n",
		"openspec/changes/add-a/proposal.md": "# Add a\n\n## Why\nBecause of all that is said here, at length, about it.\n\n## What Changes\n- a\n",
		"openspec/changes/add-a/tasks.md":    "- [x] one\n",
		"openspec/changes/other/tasks.md":    "- [ ] one\n",
		"openspec/specs/.gitkeep":            "",
		"openspec/changes/archive/.gitkeep":  "",
	})
	run(t, tool(t, dir, "openspec", "archive", "add-a", "--yes", "--skip-specs", "--no-validate"))
	got := standings(open(t, dir, "openspec"))
	if len(got) != 2 || got["add-a"].String() != "5_archived 1/1" {
		t.Errorf("%v", got)
	}
}
