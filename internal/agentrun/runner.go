package agentrun

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/supervise"
)

// stopGrace is the time between SIGTERM and SIGKILL. Once the agent itself has been asked to stop it is at most
// lastGrace, so that the process ends within the 10 s that service managers allow. Tests of real processes shorten
// both.
var stopGrace, lastGrace = 10 * time.Second, 7 * time.Second

const (
	// A command that ends by itself is restarted after at most restartFirst, then after twice as long each time, up to
	// restartMax. After a run of at least restartMax the pauses start with restartFirst again.
	restartFirst = 2 * time.Second
	restartMax   = time.Minute
)

// assignment is the project that an agent is assigned to, zero for none.
type assignment struct{ project, url string }

type runner struct {
	Options
	client *Client
	file   *stateFile

	// Only run uses these: the last token for the command, and its project.
	token, tokenProject string

	mu         sync.Mutex
	want       assignment
	reassigned chan struct{} // closed when want changes
	state      domain.AgentState
	detail     string // how the command last ended
	changed    func() // called when one of these changes
	tail       *tail  // the end of the command's output
}

func newRunner(o Options, c *Client, file *stateFile) *runner {
	return &runner{
		Options: o, client: c, file: file, reassigned: make(chan struct{}), state: domain.AgentIdle, changed: func() {},
		tail: &tail{},
	}
}

// isOurs reports whether a variable of the environment is one of Switchyard's, many of which are secrets: the command
// gets only those that say where it works.
func isOurs(line string) bool { return strings.HasPrefix(line, "SWITCHYARD_") }

// tokenLimit is the time limit for getting a token, so that an unreachable gateway does not delay a command for long.
const tokenLimit = 5 * time.Second

// access returns the environment variables with which a command in the given project can call the gateway itself, none
// if the gateway issues no tokens. The last token is reused while it is valid, and while the gateway cannot be reached.
func (r *runner) access(ctx context.Context, project string) []string {
	ctx, cancel := context.WithTimeout(ctx, tokenLimit)
	defer cancel()
	if r.tokenProject != project {
		r.tokenProject, r.token = project, ""
	}
	if r.token == "" || isRefusal(
		r.client.Call(ctx, tokenLimit, http.MethodGet, "/gateway/mode", r.token, nil, nil), http.StatusUnauthorized,
	) {
		var issued struct {
			Token   string `json:"token"`
			Project string `json:"project"`
		}
		who := r.file.get().identity
		err := r.client.Call(ctx, tokenLimit, http.MethodPost, who.path()+"/token", who.Secret, nil, &issued)
		if err != nil {
			r.Log.WarnContext(ctx, "cannot get a token for the command", "error", err)
		}
		if r.token = ""; issued.Project == project { // otherwise the agent has just been reassigned
			r.token = issued.Token
		}
	}
	if r.token == "" {
		return nil
	}
	return []string{
		"SWITCHYARD_GATEWAY_URL=" + r.client.gateway, "SWITCHYARD_MCP_URL=" + r.client.gateway + "/mcp",
		"SWITCHYARD_API_TOKEN=" + r.token,
	}
}

// assign makes the command run for a; for the zero assignment it is stopped. A project whose address changes stays the
// same project: its command goes on.
func (r *runner) assign(a assignment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	same := r.want.project == a.project
	r.want = a
	if !same {
		close(r.reassigned)
		r.reassigned = make(chan struct{})
	}
}

// current returns the assignment, and a channel that is closed when there is another one.
func (r *runner) current() (a assignment, reassigned <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.want, r.reassigned
}

// status returns the state and the detail that a heartbeat reports. The detail says how the command ended, and has the
// last lines of its output. changed is called when they are no longer true.
func (r *runner) status(changed func()) (domain.AgentState, string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = changed
	return r.state, strings.Trim(r.detail+"\n"+r.tail.String(), "\n")
}

func (r *runner) set(state domain.AgentState, detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state != state || r.detail != detail {
		r.state, r.detail = state, detail
		r.changed()
	}
}

// run runs the command whenever the agent is assigned to a project, until ctx ends. When it returns, no command is
// running.
func (r *runner) run(ctx context.Context) {
	r.stopLeftover(ctx)
	backoff := supervise.Backoff{First: restartFirst, Max: restartMax}
	for ctx.Err() == nil {
		at, reassigned := r.current()
		if at.project == "" || len(r.Command) == 0 {
			r.set(domain.AgentIdle, "")
			r.token = "" // it has ended with the assignment, which a gateway without authentication does not say
			backoff.Reset()
			select {
			case <-reassigned:
			case <-ctx.Done():
			}
			continue
		}
		if r.WhenWaiting && !r.awaitStory(ctx, at.project, reassigned) {
			continue
		}
		began := time.Now()
		state, ending := r.runAt(ctx, at, reassigned)
		if now, _ := r.current(); ctx.Err() != nil || now.project != at.project {
			continue
		}
		if time.Since(began) >= restartMax {
			backoff.Reset()
		}
		pause := backoff.Next()
		r.Log.WarnContext(ctx, "the command ended", "project", at.project, "ending", ending, "retry_in", pause)
		r.set(state, ending)
		supervise.Await(ctx, reassigned, pause)
	}
}

// runAt runs the command for an assignment until it ends by itself, the agent is reassigned, or ctx ends. No process of
// its group is left then. It returns the state that follows and a description of how the command ended.
func (r *runner) runAt(ctx context.Context, at assignment, reassigned <-chan struct{}) (domain.AgentState, string) {
	r.mu.Lock()
	r.tail = &tail{}
	out := io.MultiWriter(r.tail, r.Output)
	r.mu.Unlock()
	env := append(slices.DeleteFunc(slices.Clone(r.Environment), isOurs),
		"SWITCHYARD_PROJECT="+at.project, "SWITCHYARD_PROJECT_URL="+at.url, agentIDVariable+"="+r.file.get().ID)
	if r.Worktrees != "" {
		env = append(env, "SWITCHYARD_WORKTREES="+r.Worktrees)
	}
	env, command := append(env, r.access(ctx, at.project)...), r.Command
	if !r.NoTelemetry {
		env, command = telemetry(env, command, r.client.gateway, r.token, at.project)
	}
	p, err := prepare(r.Log, command, env, out)
	if err != nil {
		return domain.AgentFailed, "cannot start: " + err.Error()
	}
	err = r.file.update(func(s *state) { s.Command = p.id })
	if err == nil {
		err = p.group.begin()
	}
	if err != nil {
		r.stop(ctx, p)
		return domain.AgentFailed, "cannot start: " + err.Error()
	}
	r.Log.InfoContext(ctx, "the command has started", "project", at.project, "pid", p.id.PGID)
	r.set(domain.AgentRunning, "")
	select {
	case <-p.exited:
	case <-reassigned:
	case <-ctx.Done():
	}
	r.stop(ctx, p)
	if err := r.file.update(func(s *state) { s.Command = processGroup{} }); err != nil {
		r.Log.ErrorContext(ctx, "cannot write the state file", "error", err)
	}
	select {
	case <-p.exited:
	default:
		return domain.AgentFailed, "cannot be killed"
	}
	if p.failed {
		return domain.AgentFailed, p.status
	}
	return domain.AgentIdle, p.status
}

func (r *runner) stop(ctx context.Context, p *process) {
	grace, done := graceOf(ctx)
	defer done()
	p.stop(grace)
}

// graceOf returns a context for a command that is asked to stop now; it ends when the command must be killed. ctx is
// the agent's.
func graceOf(ctx context.Context) (grace context.Context, done func()) {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	last := context.AfterFunc(ctx, func() {
		supervise.Sleep(grace, lastGrace)
		cancel()
	})
	return grace, func() { last(); cancel() }
}

func (r *runner) stopLeftover(ctx context.Context) {
	grace, done := graceOf(ctx)
	defer done()
	saved := r.file.get()
	if stopLeftover(grace, saved.Command, saved.ID) {
		r.Log.Warn("ended a command that was left running", "pid", saved.Command.PGID)
	}
}
