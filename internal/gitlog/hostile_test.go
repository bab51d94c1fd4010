package gitlog_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"switchyard/internal/waittest"
)

// imports makes commits of the board's last hours from a stream of git fast-import.
func (p *project) imports(stream string) {
	p.t.Helper()
	cmd := exec.Command("git", "-C", p.dir, "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(stream)
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
}

// An older git fetches what a partial clone lacks, in the way that the repository says, which may be a program.
func TestAPromisedObjectIsNotFetched(t *testing.T) {
	p := newProject(t, "7_login")
	p.commit("7_login: one", 1)
	blob := p.git("rev-parse", "HEAD:file1")
	p.commit("7_login: two", 2)
	if err := os.Remove(filepath.Join(p.dir, ".git", "objects", blob[:2], blob[2:])); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(t.TempDir(), "was_run")
	for key, value := range map[string]string{
		"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
		"remote.origin.url": "ext::touch " + mark, "protocol.ext.allow": "always", "protocol.allow": "always",
	} {
		p.git("config", key, value)
	}
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	older := filepath.Join(t.TempDir(), "git")
	script := "#!/bin/sh\nunset GIT_NO_LAZY_FETCH\ntouch " + mark + ".tried\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(older, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(older)+string(os.PathListSeparator)+os.Getenv("PATH"))
	p.log.SetRecheck(10 * time.Millisecond)
	p.run()
	waittest.Until(t, "a second try", func() bool {
		_, err := os.Stat(mark + ".tried")
		return err == nil && p.log.Commits("7_login") != nil || strings.Contains(p.logs.String(), "cannot read")
	})
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program was run")
	}
}

func TestTheLinesOfAHugeFileAreNotCounted(t *testing.T) {
	p := newProject(t, "7_login")
	p.write("huge", strings.Repeat("a line\n", 3<<20))
	p.commit("7_login: one", 1)
	p.run()
	p.expect("7_login", "7_login: one")
	if c := p.log.Commits("7_login")[0]; c.Files != 3 || c.Added != 2 {
		t.Errorf("%+v", c)
	}
}

// Each of these is a few hundred kilobytes in a repository.
func TestAHostileHistoryTakesLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("takes over a second of processor time")
	}
	start := time.Now().Add(-time.Hour).Unix()
	commit := func(stream *strings.Builder, i int) {
		fmt.Fprintf(stream, "commit refs/heads/main\ncommitter Ada <ada@example.org> %d +0000\ndata 1\nx\n", start+int64(i))
	}
	for name, history := range map[string]struct {
		layout string
		most   uint64 // MiB; the long names are 114
		write  func(p *project, stream *strings.Builder)
	}{
		"long names": {"", 100, func(p *project, stream *strings.Builder) {
			p.write("1_backlog/7.md", "x")
			for i := range 12 {
				commit(stream, i)
				for file := range 200 {
					name := fmt.Sprintf("1_backlog/%d%s.md\n", file, strings.Repeat("a", 50_000))
					if i%2 == 0 {
						stream.WriteString("M 644 inline " + name + "data 1\nx\n")
					} else {
						stream.WriteString("D " + name)
					}
				}
			}
		}},
		"each commit moves everything": {"task-master", 350, func(p *project, stream *strings.Builder) {
			for i, status := range []string{"pending", "done"} {
				var tasks []string
				for task := range 20_000 {
					tasks = append(tasks, fmt.Sprintf(`{"id":%d,"status":%q}`, task, status))
				}
				file := `{"tasks":[` + strings.Join(tasks, ",") + "]}"
				p.write(".taskmaster/tasks/tasks.json", file)
				fmt.Fprintf(stream, "blob\nmark :%d\ndata %d\n%s\n", i+1, len(file), file)
			}
			for i := range 200 {
				commit(stream, i)
				fmt.Fprintf(stream, "M 644 :%d .taskmaster/tasks/tasks.json\n", 1+i%2)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			var stream strings.Builder
			history.write(p, &stream)
			p.imports(stream.String())
			p.onLayout("", history.layout)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			p.run()
			waittest.Until(t, "its moves", func() bool { return p.log.Moves().Complete })
			runtime.ReadMemStats(&after)
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > history.most {
				t.Errorf("%d MiB", used)
			} else {
				t.Logf("%d MiB, %d moves", used, len(p.log.Moves().List))
			}
		})
	}
}

// Git takes minutes to read this one, which it does before it prints anything.
func TestAHugeMailmapIsNotRead(t *testing.T) {
	p := newBoard(t)
	var mailmap strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&mailmap, "Somebody <somebody@example.org> <%d@example.org>\n", 1_000_000-i)
	}
	p.write(".mailmap", mailmap.String())
	p.write("work/1_backlog/7_login.md", "x")
	p.stories("7_login")
	p.did(30, "-m", "7_login")
	began := time.Now()
	p.run()
	p.wantMoves("7_login →1_backlog 30")
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

// What was read until git was cut off is not the whole past, and reading is tried again, later each time.
func TestALookThatIsCutOffIsNotComplete(t *testing.T) {
	p := newBoard(t)
	p.write("work/1_backlog/7.md", "x")
	p.did(30)
	real, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	tries := filepath.Join(t.TempDir(), "tries")
	slow := filepath.Join(t.TempDir(), "git")
	script := "#!/bin/sh\ncase \"$*\" in *--raw*) echo >> " + tries + "; exec sleep 100;; esac\nexec " + real + " \"$@\"\n"
	if err := os.WriteFile(slow, []byte(script), 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(slow)+string(os.PathListSeparator)+os.Getenv("PATH"))
	p.log.SetLimits(100*time.Millisecond, 500*time.Millisecond) // time for the script to begin, however busy the machine
	p.run()
	var times []time.Time
	waittest.Until(t, "two pauses", func() bool {
		text, _ := os.ReadFile(tries)
		if len(text) > len(times) {
			times = append(times, time.Now())
		}
		return len(times) > 2
	})
	if p.moved() != "incomplete" || !strings.Contains(p.logs.String(), "took too long") {
		t.Errorf("%s, with %s", p.moved(), p.logs.String())
	}
	if first, second := times[1].Sub(times[0]), times[2].Sub(times[1]); second < first*5/4 {
		t.Errorf("the pauses are %v and then %v", first, second)
	}
}
