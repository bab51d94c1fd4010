// Package gittest sets traps in repositories, for tests.
package gittest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// programKey matches keys of git's configuration that may name a program or a file.
var programKey = regexp.MustCompile(`(?i)cmd|command|program|path|file|hook|helper|tool|driver|clean|smudge|process|` +
	`textconv|external|pager|editor|proxy|askpass|template|monitor|blob|cert|key|browser|viewer`)

var placeholder = regexp.MustCompile(`<[^>]*>|\*`)

// refused finds the key of which git says that its value cannot be a text.
var refused = regexp.MustCompile(`(?:for|variable) '([^'/]+)'`)

// Git runs git in dir and returns what it prints.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{
		"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main",
	}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_EDITOR=true")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Traps makes every key of the configuration of the repository in dir, which has commits, that may name a program or a
// file a trap, and gives it attributes and hooks that lead there. The test fails if one has been sprung until its end,
// or if none was ever set: git by itself must spring some.
func Traps(t *testing.T, dir string) {
	t.Helper()
	mark := filepath.Join(t.TempDir(), "sprung")
	trap := filepath.Join(t.TempDir(), "trap")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	write(trap, "#!/bin/sh\necho \"$0 $*\" >> "+mark+"\ncat\n")
	config := Git(t, dir, "rev-parse", "--absolute-git-dir") + "/config"
	before, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	info := filepath.Join(filepath.Dir(config), "info")
	if err := os.MkdirAll(info, 0o777); err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(info, "attributes"), "* diff=evil filter=evil merge=evil\n")
	hooks := "post-index-change reference-transaction pre-commit post-commit post-checkout"
	for hook := range strings.FieldsSeq(hooks) {
		write(filepath.Join(filepath.Dir(config), "hooks", hook), "#!/bin/sh\n"+trap+" "+hook+" </dev/null\n")
	}
	text := string(before) + "[log]\n\tshowSignature = true\n\tdiffMerges = remerge\n" +
		"[filter \"evil\"]\n\trequired = true\n\tprocess = " + trap + "\n" +
		"[pager]\n\tlog = " + trap + "\n\tstatus = " + trap + "\n"
	for key := range strings.SplitSeq(Git(t, dir, "help", "-c"), "\n") {
		key = placeholder.ReplaceAllString(key, "evil")
		section, name, dotted := strings.Cut(key, ".")
		isNumber := strings.HasSuffix(name, "Timeout") // of which git says so only when it commits
		if !dotted || strings.HasPrefix(section, "include") || !programKey.MatchString(name) || isNumber {
			continue
		}
		if sub, last, two := strings.Cut(name, "."); two {
			section, name = section+` "`+sub+`"`, last
		}
		text += "[" + section + "]\n\t" + name + " = " + trap + " # " + key + "\n"
	}
	try := func(args ...string) string { // what git does by itself
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	for range 50 { // until git takes the configuration
		write(config, text)
		found := refused.FindStringSubmatch(try("-c", "core.fsmonitor=false", "status") + try("log", "-1"))
		if found == nil {
			break
		}
		line := regexp.MustCompile(`(?i)\n.* # ` + regexp.QuoteMeta(found[1]) + `\n`)
		if next := line.ReplaceAllString(text, "\n"); next != text {
			text = next
		} else {
			t.Fatalf("git refuses %s", found[1])
		}
	}
	_ = os.Remove(mark)
	if out := try("log", "-1"); strings.Contains(out, "fatal:") {
		t.Fatal(out)
	}
	try("log", "-p", "-m", "--ext-diff")
	try("status")
	if sprung, _ := os.ReadFile(mark); len(sprung) == 0 {
		t.Error("git by itself springs no trap")
	}
	_ = os.Remove(mark)
	t.Cleanup(func() {
		if sprung, err := os.ReadFile(mark); err == nil {
			t.Errorf("programs were run:\n%s", sprung)
		}
	})
}
