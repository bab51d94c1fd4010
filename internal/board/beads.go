package board

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/jsonscan"
)

const (
	beadsDir = ".beads"
	// beadsFile is what git has of the issues. The current state comes from bd, since its database may be ahead.
	beadsFile = beadsDir + "/issues.jsonl"
	beadsPoll = 2 * time.Second
	beadsWait = 30 * time.Second
)

// beadsRules are the rules of beads, whose data only its own command line reads and writes.
type beadsRules struct {
	dir string

	mu      sync.Mutex
	list    []byte    // bd's last answer
	pending bool      // something has changed since
	next    time.Time // when bd may be run again
}

type beadsIssue struct {
	ID          looseText  `json:"id"`
	Title       looseText  `json:"title"`
	Description looseText  `json:"description"`
	Design      looseText  `json:"design"`
	Acceptance  looseText  `json:"acceptance_criteria"`
	Notes       looseText  `json:"notes"`
	Status      looseText  `json:"status"`
	Type        looseText  `json:"issue_type"`
	Updated     looseText  `json:"updated_at"`
	Blockers    beadsLinks `json:"dependencies"`
	BlockedBy   looseTexts `json:"blocked_by"` // where bd says what blocks it

	raw json.RawMessage
}

// beadsLinks are the ids of the issues that block one.
type beadsLinks []string

func (l *beadsLinks) UnmarshalJSON(raw []byte) error {
	r := jsonscan.NewReader(raw)
	if r.Kind() != '[' {
		return nil
	}
	for range r.Parts() {
		var link struct {
			On   looseText `json:"depends_on_id"`
			Type looseText `json:"type"`
		}
		if json.Unmarshal(r.Value(), &link) == nil && link.Type == "blocks" && len(*l) < maxParts {
			*l = append(*l, limit(string(link.On)))
		}
	}
	return nil
}

func openBeads(files *tree) (*rules, error) {
	if _, err := files.open(beadsDir); err != nil {
		return nil, err
	}
	f := &beadsRules{dir: files.root.Name(), pending: true}
	return &rules{
		paths: []string{beadsDir}, unit: f.unit, stories: f.stories, source: f.source, move: f.move,
		descend: func(dir string) bool { return f.unit(dir) != "" },
		stages:  plainStages("deferred", "open", "in_progress", "closed"),
	}, nil
}

// unit returns one unit for all files except those that bd touches when it only reads.
func (f *beadsRules) unit(file string) string {
	switch path.Ext(file) {
	case ".lock", ".log", ".pid", ".sock", ".db-shm":
		return ""
	}
	if !strings.HasPrefix(file, beadsDir+"/") || path.Base(file) == "." {
		return ""
	}
	return beadsFile
}

func (f *beadsRules) source(changed bool) (list []byte, fresh bool, again time.Time, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pending = f.pending || changed
	switch {
	case !f.pending:
		return f.list, false, time.Time{}, nil
	case f.list != nil && time.Now().Before(f.next):
		return f.list, false, f.next, nil
	}
	list, err = f.run("list", "--all", "--json", "--limit=0") // by default it lists 50, or 20 for agents
	f.next = time.Now().Add(beadsPoll)
	says := func(key string) bool { return bytes.Contains(list, []byte(strconv.Quote(key))) }
	if err == nil && says("dependency_count") && !says("dependencies") { // earlier versions list no dependencies
		var blocked []byte
		blocked, err = f.run("blocked", "--json")
		list = append(list, blocked...)
	}
	if err != nil {
		return nil, false, f.next, err
	}
	fresh = !bytes.Equal(f.list, list)
	f.list, f.pending = list, false
	return list, fresh, time.Time{}, nil
}

func (f *beadsRules) run(args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), beadsWait)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "bd", args...)
	cmd.Dir, cmd.Stderr, cmd.WaitDelay = f.dir, &limitedBuffer{&said, maxText}, time.Second
	secret := func(line string) bool { return strings.HasPrefix(line, "SWITCHYARD_") } // or any other setting of ours
	cmd.Env = append(slices.DeleteFunc(os.Environ(), secret), "BD_JSON_ENVELOPE=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, domain.WrapError(domain.Unavailable, err, "bd cannot be run: "+err.Error())
	}
	list, err := io.ReadAll(io.LimitReader(out, maxJSON+1))
	if len(list) > maxJSON {
		cancel()
		err = errors.New("it says more than 16 MiB")
	}
	err = cmp.Or(err, ctx.Err(), cmd.Wait())
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("it takes more than 30 s")
	}
	if err != nil {
		words := strings.TrimSpace("bd " + args[0] + " failed: " + err.Error() + " " + limit(said.String()))
		return nil, domain.WrapError(domain.Unavailable, err, words)
	}
	return list, nil
}

type limitedBuffer struct {
	*bytes.Buffer
	most int
}

func (b *limitedBuffer) Write(text []byte) (int, error) {
	b.Buffer.Write(text[:min(len(text), max(0, b.most-b.Len()))])
	return len(text), nil
}

// issues returns what bd lists, with or without its envelope, or the lines of its file.
func (f *beadsRules) issues(content []byte) (issues []json.RawMessage, err error) {
	for r := jsonscan.NewReader(content); r.More(); {
		listed, start := r, r.At()
		if r.Kind() == '{' {
			listed = dataOf(r.Value())
		}
		if listed == nil {
			issues = append(issues, content[start:r.Offset()])
		} else {
			for range listed.Parts() {
				if issues = append(issues, listed.Value()); len(issues) > maxTasks {
					return nil, errors.New("the file has more than 50,000 issues")
				}
			}
		}
		err = r.Err()
	}
	return issues, err
}

// dataOf returns a reader of the list in bd's envelope, nil if it is not one.
func dataOf(envelope []byte) *jsonscan.Reader {
	r := jsonscan.NewReader(envelope)
	for name := range r.Parts() {
		if name.Is("data") && r.Kind() == '[' {
			return r
		}
	}
	return nil
}

var beadsOthers = []looseText{"agent", "role", "message", "convoy"}

func (f *beadsRules) stories(_ string, files Files, _ []entry) (entries []entry, err error) {
	list, err := f.issues(files.Read(beadsFile))
	if err != nil {
		return nil, err
	}
	issues, open := make([]beadsIssue, 0, len(list)), map[looseText]bool{}
	places := map[looseText]int{}
	for _, raw := range list {
		issue := beadsIssue{raw: raw}
		_ = json.Unmarshal(raw, &issue) // fields of the wrong type are left out
		if at, twice := places[issue.ID]; twice && issue.BlockedBy != nil {
			issues[at].Blockers = beadsLinks(issue.BlockedBy)
			continue
		}
		places[issue.ID] = len(issues)
		issues, open[issue.ID] = append(issues, issue), issue.Status != "closed"
	}
	var closed []string // these are not stories
	for _, issue := range issues {
		if issue.ID == "" || issue.ID[0] == '-' || slices.Contains(beadsOthers, issue.Type) {
			if !open[issue.ID] {
				closed = append(closed, limit(string(issue.ID)))
			}
			continue
		}
		e := entry{id: limit(string(issue.ID)), stage: beadsStage(issue.Status)}
		blocked, isFirst := issue.blocked(open), len(entries) == 0
		e.record = func() *record {
			r := &record{
				name: string(issue.Title), path: beadsDir, blocked: blocked, front: issue.raw,
				version: append([]byte(blocked+"\x00"), issue.raw...), depends: issue.Blockers,
			}
			if isFirst {
				r.parts = closed
			}
			r.modified, _ = time.Parse(time.RFC3339, string(issue.Updated))
			for _, text := range []looseText{issue.Description, issue.Design, issue.Acceptance, issue.Notes} {
				r.body = strings.TrimSpace(r.body + "\n\n" + string(text))
			}
			return r
		}
		entries = append(entries, e)
	}
	return entries, nil
}

func beadsStage(status looseText) string {
	switch word := strings.ToLower(string(status)); word {
	case "", "blocked", "pinned", "hooked":
		return "open"
	default:
		return limit(word)
	}
}

// blocked returns why an issue is blocked: by its status, or by others that are open.
func (i *beadsIssue) blocked(open map[looseText]bool) string {
	if i.Status == "closed" {
		return ""
	}
	blockers := slices.DeleteFunc(slices.Clone(i.Blockers), func(id string) bool { return !open[looseText(id)] })
	switch {
	case len(blockers) > 0:
		return "blocked by " + strings.Join(blockers, ", ")
	case i.Status == "blocked":
		return "The status of the issue is blocked."
	}
	return ""
}

func (f *beadsRules) move(id string, _ *record, _ []byte, to stageRule) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.run("update", id, "--status", to.key)
	f.pending, f.next = true, time.Time{}
	return nil, err
}
