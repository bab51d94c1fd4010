package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"switchyard/internal/domain"
	"switchyard/internal/neterr"
	"switchyard/internal/supervise"
)

func mcpCommand() *cobra.Command {
	var gateway string
	cmd := &cobra.Command{
		Use:   "mcp [--gateway URL]",
		Short: "Connect an MCP client that uses stdin and stdout to a gateway",
		Long: "Connect an MCP client that uses stdin and stdout to a gateway's /mcp. SWITCHYARD_API_TOKEN is the token\n" +
			"for a gateway that requires one. In an agent's command, it and SWITCHYARD_MCP_URL, the gateway's\n" +
			"address, are already set.",
		Example: "  SWITCHYARD_API_TOKEN=… switchyard mcp --gateway http://yard:3000",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if url := os.Getenv("SWITCHYARD_MCP_URL"); url != "" && !cmd.Flags().Changed("gateway") {
				gateway = strings.TrimSuffix(url, "/mcp")
			}
			address, err := gatewayAddress(gateway)
			if err != nil {
				return err
			}
			token := domain.Secret(os.Getenv("SWITCHYARD_API_TOKEN"))
			if !token.FitsHeader() {
				return usagef("SWITCHYARD_API_TOKEN must be ASCII characters without spaces")
			}
			pipe := newMCPPipe(address, token, cmd.OutOrStdout())
			return supervise.UnlessEnded(cmd.Context(), pipe.run(cmd.Context(), cmd.InOrStdin()))
		},
	}
	cmd.Flags().StringVar(&gateway, "gateway", "http://localhost:3000",
		"connect to the gateway at `URL` [$SWITCHYARD_MCP_URL]")
	return cmd
}

const (
	// maxMCPMessage is the longest message that a gateway accepts, in bytes.
	maxMCPMessage = 1 << 20
	// maxMCPAnswer is the longest response that is passed on, in bytes: a tool's result may be 8 MiB, and is encoded
	// twice.
	maxMCPAnswer = 32 << 20
	// mcpAtOnce is how many calls are in flight at once.
	mcpAtOnce = 32
	// newestHandshake is the last version of the protocol in which a handshake negotiates the version. In later ones each
	// message names it.
	newestHandshake = "2025-11-25"
)

// mcpPipe passes a client's messages on to a gateway, each as an HTTP request, and passes the responses back.
type mcpPipe struct {
	url   string
	token domain.Secret
	http  *http.Client
	calls errgroup.Group
	stop  context.CancelCauseFunc // ends run with an error

	worked atomic.Bool // the gateway has responded

	mu      sync.Mutex // guards what follows, and writing
	out     io.Writer
	version string // negotiated in the handshake, "" before it
	cancel  map[string]context.CancelFunc
}

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

func newMCPPipe(gateway string, token domain.Secret, stdout io.Writer) *mcpPipe {
	p := &mcpPipe{
		url: strings.TrimRight(gateway, "/") + "/mcp", token: token, out: stdout, cancel: map[string]context.CancelFunc{},
		http: neterr.Client(http.DefaultTransport.(*http.Transport).Clone(), maxMCPAnswer),
	}
	p.calls.SetLimit(mcpAtOnce)
	return p
}

// run passes messages on, one per line, until in ends and all have been answered. It returns an error if the gateway
// never responded, or refused the token.
func (p *mcpPipe) run(ctx context.Context, in io.Reader) error {
	ctx, p.stop = context.WithCancelCause(ctx)
	go func() {
		err := p.read(ctx, in)
		_ = p.calls.Wait() // each has answered its own error
		p.stop(cmp.Or(err, io.EOF))
	}()
	<-ctx.Done()
	if err := context.Cause(ctx); err != io.EOF {
		return err
	}
	return nil
}

func (p *mcpPipe) read(ctx context.Context, in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxMCPMessage+2)
	for ctx.Err() == nil && lines.Scan() {
		if line := bytes.TrimSpace(lines.Bytes()); len(line) > 0 {
			p.pass(ctx, bytes.Clone(line))
		}
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("a message is longer than %d bytes", maxMCPMessage)
	}
	return lines.Err()
}

// pass sends a message in the background. Clients await the response to each message of the handshake, so these need no
// order.
func (p *mcpPipe) pass(ctx context.Context, line []byte) {
	if !json.Valid(line) {
		p.writeError(json.RawMessage("null"), -32700, "the line is not JSON")
		return
	}
	var message mcpMessage
	_ = json.Unmarshal(line, &message) // the gateway reports malformed messages
	ctx, cancel := context.WithCancel(ctx)
	id, isRequest := string(message.ID), len(message.ID) > 0 && message.Method != ""
	p.mu.Lock()
	if other := p.cancel[string(message.Params.RequestID)]; other != nil && message.Method == "notifications/cancelled" {
		other()
	}
	if isRequest {
		p.cancel[id] = cancel
	}
	p.mu.Unlock()
	p.calls.Go(func() error {
		defer cancel()
		err := p.send(ctx, line, message)
		p.mu.Lock()
		delete(p.cancel, id)
		p.mu.Unlock()
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if isRequest {
			p.writeError(message.ID, -32603, err.Error())
		}
		if !p.worked.Load() || errors.As(err, new(tokenError)) {
			p.stop(err)
		}
		return nil
	})
}

func (p *mcpPipe) writeError(id json.RawMessage, code int, text string) {
	answer, _ := json.Marshal(map[string]any{
		"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": text},
	})
	p.write(answer)
}

func (p *mcpPipe) write(message []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = p.out.Write(append(message, '\n')) // a client that is gone closes in as well
}

type tokenError string

func (e tokenError) Error() string { return string(e) }

// send makes one request and writes the messages of the response; a notification's has none.
func (p *mcpPipe) send(ctx context.Context, line []byte, message mcpMessage) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(line))
	if err != nil {
		return err
	}
	p.setHeader(request.Header, message)
	response, err := p.http.Do(request)
	if err != nil {
		return fmt.Errorf("the gateway at %s does not answer: %s", p.url, neterr.Describe(err, 0))
	}
	defer response.Body.Close()
	status, media := response.StatusCode, response.Header.Get("Content-Type")
	switch {
	case status == http.StatusUnauthorized && p.token == "":
		return tokenError("the gateway at " + p.url + " requires a token: set SWITCHYARD_API_TOKEN")
	case status == http.StatusUnauthorized || status == http.StatusTooManyRequests:
		return tokenError("the gateway at " + p.url + " refuses the token in SWITCHYARD_API_TOKEN")
	}
	incomplete := fmt.Errorf("the response of the gateway at %s is incomplete or over %d MiB", p.url, maxMCPAnswer>>20)
	if strings.HasPrefix(media, "text/event-stream") {
		lines := bufio.NewScanner(response.Body)
		lines.Buffer(nil, maxMCPAnswer)
		for lines.Scan() {
			if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:")); ok {
				p.passAnswer(data, message)
			}
		}
		if lines.Err() != nil {
			return incomplete
		}
		return nil
	}
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return incomplete
	case status == http.StatusAccepted && len(body) == 0 || p.passAnswer(body, message):
		return nil
	}
	text := strings.Join(strings.Fields(string(body[:min(len(body), 300)])), " ") // quoted, since a terminal may show it
	isRefusal := status >= 400 && status != http.StatusNotFound && status != http.StatusMethodNotAllowed
	if isRefusal && strings.HasPrefix(media, "text/plain") {
		p.worked.Store(true)
		return fmt.Errorf("the gateway at %s answers with HTTP status %d: %q", p.url, status, text)
	}
	return fmt.Errorf("%s answers with HTTP status %d, not with MCP: is it a gateway? %q", p.url, status, text)
}

// passAnswer writes a JSON-RPC message, or batch, and reports whether body is one.
func (p *mcpPipe) passAnswer(body []byte, message mcpMessage) bool {
	var answer bytes.Buffer
	if json.Compact(&answer, body) != nil || answer.Len() == 0 || !strings.ContainsRune("{[", rune(answer.Bytes()[0])) {
		return false
	}
	var initialized struct {
		Result struct {
			ProtocolVersion string `json:"protocolVersion"`
		} `json:"result"`
	}
	p.worked.Store(true)
	if message.Method == "initialize" && json.Unmarshal(body, &initialized) == nil {
		p.mu.Lock()
		p.version = initialized.Result.ProtocolVersion
		p.mu.Unlock()
	}
	p.write(answer.Bytes())
	return true
}

func (p *mcpPipe) setHeader(header http.Header, message mcpMessage) {
	header.Set("Content-Type", "application/json")
	header.Set("Accept", "application/json, text/event-stream")
	if p.token != "" {
		header.Set("Authorization", "Bearer "+p.token.Reveal())
	}
	p.mu.Lock()
	version := cmp.Or(message.Params.Meta.Version, p.version)
	p.mu.Unlock()
	if version == "" || !domain.Secret(version).FitsHeader() {
		return
	}
	header.Set("Mcp-Protocol-Version", version)
	if version > newestHandshake && message.Method != "" {
		header.Set("Mcp-Method", headerValue(message.Method))
		if name := cmp.Or(message.Params.Name, message.Params.URI); name != "" {
			header.Set("Mcp-Name", headerValue(name))
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
