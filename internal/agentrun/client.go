package agentrun

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/neterr"
)

const (
	// CallLimit is the time limit of a call, in addition to the time for which the gateway is asked to hold it.
	CallLimit = 15 * time.Second
	// maxBeat is the longest heartbeat that a gateway accepts, in bytes.
	maxBeat = 4 << 10
	// maxAnswer is the size limit of responses, in bytes.
	maxAnswer = 8 << 20
)

// Client calls a gateway.
type Client struct {
	gateway string
	http    *http.Client
}

func NewClient(gateway string) *Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &Client{strings.TrimRight(gateway, "/"), neterr.Client(transport, maxAnswer)}
}

// Refusal is a response other than 2xx.
type Refusal struct {
	Status int
	Text   string // its first line
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("the gateway answered %d: %s", r.Status, r.Text)
}

type agentAnswer struct {
	ID              string `json:"id"`
	Label           string `json:"label"`
	AssignedProject string `json:"assigned_project"`
	ProjectURL      string `json:"project_url"`
}

func (c *Client) join(ctx context.Context, token domain.Secret, label, version string) (identity, error) {
	var answer struct {
		Agent  agentAnswer `json:"agent"`
		Secret string      `json:"secret"`
	}
	err := c.Call(ctx, CallLimit, http.MethodPost, "/gateway/agents", "", map[string]string{
		"token": token.Reveal(), "label": label, "version": version,
	}, &answer)
	if err == nil && (answer.Agent.ID == "" || answer.Secret == "") {
		err = &Refusal{http.StatusCreated, "but without id and secret; is this a gateway?"}
	}
	return identity{Gateway: c.gateway, ID: answer.Agent.ID, Label: answer.Agent.Label, Secret: answer.Secret}, err
}

// heartbeat reports the agent's state and returns its assignment. The gateway holds the response for at most wait, as
// long as the agent is assigned to the project assigned.
func (c *Client) heartbeat(ctx context.Context, who identity, state domain.AgentState, detail, assigned string,
	wait time.Duration,
) (assignment, error) {
	query := url.Values{"assigned": {assigned}, "wait": {wait.String()}}
	if wait <= 0 {
		query = url.Values{}
	}
	var answer agentAnswer
	err := c.Call(ctx, wait+CallLimit, http.MethodPost,
		who.path()+"/heartbeat?"+query.Encode(), who.Secret, beatBody(state, detail),
		&answer)
	return assignment{project: answer.AssignedProject, url: answer.ProjectURL}, err
}

// beatBody returns a heartbeat's body, with the beginning of detail cut off if the whole would exceed maxBeat.
func beatBody(state domain.AgentState, detail string) map[string]string {
	body := map[string]string{"state": string(state), "detail": detail}
	for {
		data, err := json.Marshal(body)
		if err != nil || len(data) <= maxBeat {
			return body
		}
		detail = strings.ToValidUTF8(detail[len(detail)/8+1:], "")
		body["detail"] = detail
	}
}

func (c *Client) leave(ctx context.Context, who identity) error {
	return c.Call(ctx, CallLimit, http.MethodDelete, who.path(), who.Secret, nil, nil)
}

// Call sends one request and decodes the response into out, unless that is nil, or for its text. There is no time limit
// if limit is 0. It returns a *Refusal for any status other than 2xx.
func (c *Client) Call(ctx context.Context, limit time.Duration, method, path, secret string, in, out any) error {
	if limit > 0 {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		ctx = limited
	}
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.gateway+path, body)
	if err != nil {
		return err
	}
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if secret != "" {
		request.Header.Set("Authorization", "Bearer "+secret)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return c.away(err, limit)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return c.away(err, limit)
	}
	if response.StatusCode >= 300 || response.StatusCode < 200 {
		return &Refusal{response.StatusCode, firstLine(data)}
	}
	if out == nil || response.StatusCode == http.StatusNoContent {
		return nil
	}
	if text, asItIs := out.(*[]byte); asItIs {
		*text = data
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("the gateway's response is malformed: %w", err)
	}
	return nil
}

func (c *Client) away(err error, limit time.Duration) error {
	return fmt.Errorf("the gateway at %s does not answer: %s", c.gateway, neterr.Describe(err, limit))
}

// firstLine returns the part of a refusal's text that is shown to people.
func firstLine(data []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(data)), "\n")
	return strings.ToValidUTF8(line[:min(len(line), 200)], "")
}
