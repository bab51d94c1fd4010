package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"switchyard/internal/domain"
	"switchyard/internal/neterr"
)

const (
	// maxMCPMessage is the longest message that a gateway accepts, in bytes.
	maxMCPMessage = 1 << 20
	// maxMCPAnswer is the longest response that is passed on, in bytes: a tool's result may be 8 MiB, and is encoded twice.
	maxMCPAnswer = 32 << 20
	// mcpAtOnce is how many calls are in flight at once.
	mcpAtOnce = 32
	// mcpCallLimit is the time limit of a call. The gateway waits for events for at most 50 s.
	mcpCallLimit = 2 * time.Minute
	// newestHandshake is the last version of the protocol in which a handshake negotiates the version. In later ones each message
	// names it.
	newestHandshake = "2025-11-25"
)

// mcpPipe passes a client's messages on to a gateway, each as an HTTP request, and passes the responses back.
type mcpPipe struct {
	url    string
	token  domain.Secret
	http   *http.Client
	stderr io.Writer
	slots  chan struct{}
	calls  sync.WaitGroup

	mu      sync.Mutex // guards what follows, and writing
	out     io.Writer
	version string // negotiated in the handshake, "" before it
	said    string // the last error printed to stderr
	worked  bool   // the gateway has responded
	cancel  map[string]context.CancelFunc
	failed  error // why it stops early
}

// mcpMessage has the fields of a message that matter here.
type mcpMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

func newMCPPipe(gateway string, token domain.Secret, stdout, stderr io.Writer) *mcpPipe {
	return &mcpPipe{
		url: strings.TrimRight(gateway, "/") + "/mcp", token: token, out: stdout, stderr: stderr,
		http: &http.Client{
			Transport: http.DefaultTransport.(*http.Transport).Clone(),
			// A redirect would send the token elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		slots: make(chan struct{}, mcpAtOnce), cancel: map[string]context.CancelFunc{},
	}
}

// run passes messages on, one per line, until in ends and all have been answered. It returns an error when the gateway never
// responded, or refused the token.
func (p *mcpPipe) run(ctx context.Context, in io.Reader) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	lines, readErr := make(chan []byte), error(nil)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, maxMCPMessage+2)
		for scanner.Scan() {
			if line := bytes.TrimSpace(scanner.Bytes()); len(line) > 0 {
				select {
				case lines <- bytes.Clone(line):
				case <-ctx.Done():
					return
				}
			}
		}
		if readErr = scanner.Err(); errors.Is(readErr, bufio.ErrTooLong) {
			readErr = fmt.Errorf("a message is longer than %d bytes", maxMCPMessage)
		}
	}()
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				p.calls.Wait()
				return errors.Join(readErr, p.failed)
			}
			p.pass(ctx, line, stop)
		case <-ctx.Done():
			p.calls.Wait()
			return context.Cause(ctx)
		}
	}
}

// pass sends a message in the background. Clients await the response to each message of the handshake, so these need no order.
func (p *mcpPipe) pass(ctx context.Context, line []byte, stop context.CancelCauseFunc) {
	var message mcpMessage
	_ = json.Unmarshal(line, &message) // the gateway reports malformed messages
	if message.Method == "notifications/cancelled" {
		p.mu.Lock()
		if cancel := p.cancel[string(message.Params.RequestID)]; cancel != nil {
			cancel()
		}
		p.mu.Unlock()
	}
	ctx, cancel := context.WithTimeout(ctx, mcpCallLimit)
	id := string(message.ID)
	p.mu.Lock()
	if id != "" && message.Method != "" {
		p.cancel[id] = cancel
	}
	p.mu.Unlock()
	p.slots <- struct{}{}
	p.calls.Go(func() {
		answer, err := p.send(ctx, line, message)
		canceled := errors.Is(ctx.Err(), context.Canceled)
		cancel()
		<-p.slots
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.cancel, id)
		if canceled {
			return
		}
		if err != nil {
			answer = p.explain(message, err)
			if p.failed != nil {
				defer stop(p.failed)
			}
		} else {
			p.worked, p.said = true, ""
		}
		if len(answer) > 0 {
			_, _ = p.out.Write(append(answer, '\n'))
		}
	})
}

// explain returns the error response to a message that could not be delivered, and prints the error to stderr or, when it is
// final, ends the pipe with it.
func (p *mcpPipe) explain(message mcpMessage, err error) []byte {
	var refused *tokenRefused
	text := err.Error()
	switch {
	case errors.As(err, &refused) || !p.worked:
		p.failed = err
	case text != p.said:
		p.said = text
		fmt.Fprintln(p.stderr, "switchyard: "+text)
	}
	if len(message.ID) == 0 || message.Method == "" {
		return nil
	}
	answer, _ := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": message.ID, "error": map[string]any{"code": -32603, "message": text},
	})
	return answer
}

// tokenRefused is the error for a missing or wrong token.
type tokenRefused struct{ text string }

func (e *tokenRefused) Error() string { return e.text }

// send makes one request and returns the response as one line, empty for a notification.
func (p *mcpPipe) send(ctx context.Context, line []byte, message mcpMessage) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(line))
	if err != nil {
		return nil, err
	}
	p.setHeader(request.Header, message)
	response, err := p.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("the gateway at %s does not answer: %s", p.url, neterr.Describe(err, 0))
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxMCPAnswer+1))
	if err != nil || len(body) > maxMCPAnswer {
		return nil, fmt.Errorf("the response of the gateway at %s is incomplete or over %d MiB", p.url, maxMCPAnswer>>20)
	}
	var answer bytes.Buffer
	isMessage := json.Compact(&answer, body) == nil && bytes.HasPrefix(answer.Bytes(), []byte("{"))
	switch {
	case response.StatusCode == http.StatusUnauthorized && p.token == "":
		return nil, &tokenRefused{"the gateway at " + p.url + " requires a token: set SWITCHYARD_API_TOKEN"}
	case response.StatusCode == http.StatusUnauthorized || response.StatusCode == http.StatusTooManyRequests:
		return nil, &tokenRefused{"the gateway at " + p.url + " refuses the token in SWITCHYARD_API_TOKEN"}
	case response.StatusCode == http.StatusAccepted && len(body) == 0:
		return nil, nil
	case !isMessage:
		text := strings.Join(strings.Fields(string(body[:min(len(body), 300)])), " ")
		return nil, fmt.Errorf("%s answers with HTTP status %d, not with MCP: is it a gateway? %s", p.url, response.StatusCode, strings.ToValidUTF8(text, ""))
	}
	if message.Method == "initialize" {
		p.settleVersion(answer.Bytes())
	}
	return answer.Bytes(), nil
}

// setHeader sets the headers that the MCP transport requires.
func (p *mcpPipe) setHeader(header http.Header, message mcpMessage) {
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json, text/event-stream")
	if p.token != "" {
		header.Set("Authorization", "Bearer "+p.token.Reveal())
	}
	version := message.Params.Meta.Version
	if version == "" {
		p.mu.Lock()
		version = p.version
		p.mu.Unlock()
	}
	if !domain.Secret(version).FitsHeader() {
		return
	}
	if version != "" {
		header.Set("Mcp-Protocol-Version", version)
	}
	if version > newestHandshake && message.Method != "" {
		header.Set("Mcp-Method", headerValue(message.Method))
		switch message.Method {
		case "tools/call", "prompts/get":
			header.Set("Mcp-Name", headerValue(message.Params.Name))
		case "resources/read":
			header.Set("Mcp-Name", headerValue(message.Params.URI))
		}
	}
}

// headerValue encodes text that a header cannot hold, as the protocol specifies.
func headerValue(text string) string {
	if domain.Secret(text).FitsHeader() {
		return text
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}

func (p *mcpPipe) settleVersion(answer []byte) {
	var initialized struct {
		Result struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"result"`
	}
	if json.Unmarshal(answer, &initialized) == nil {
		p.mu.Lock()
		p.version = initialized.Result.ProtocolVersion
		p.mu.Unlock()
	}
}
