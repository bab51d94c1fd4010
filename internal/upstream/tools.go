package upstream

import (
	"context"
	"encoding/json"
	"errors"

	"switchyard/internal/domain"
)

// maxToolPages and maxTools are the most that is read of a server's list of tools.
const maxToolPages, maxTools = 20, 1000

// ListTools requests the tools of a project's MCP server. It returns NotFound for a project server without one, Invalid
// if the server refuses the request, BadGateway with a message for people for every other failure, or ctx's error.
func (c *Client) ListTools(ctx context.Context, p domain.Project) (tools []json.RawMessage, err error) {
	err = c.withMCP(ctx, p, func(session *mcpSession) error {
		params := map[string]any{}
		for range maxToolPages {
			result, err := session.call(ctx, mcpRequest{method: "tools/list", params: params})
			if err != nil {
				return err
			}
			var page struct {
				Tools      []json.RawMessage `json:"tools"`
				NextCursor string            `json:"nextCursor"`
			}
			if err := json.Unmarshal(result, &page); err != nil {
				return domain.WrapError(domain.BadGateway, err, "answers with something other than a list of tools")
			}
			tools = append(tools, page.Tools...)
			if page.NextCursor == "" || len(tools) >= maxTools {
				break
			}
			params["cursor"] = page.NextCursor
		}
		tools = tools[:min(len(tools), maxTools)]
		return nil
	})
	return tools, err
}

// CallTool calls a tool of a project's MCP server and returns the result object unchanged. progress, unless nil, gets
// the params of each of its notifications of progress. The errors are those of ListTools; one that wraps
// domain.ErrMayHaveRun came after the tool was called.
func (c *Client) CallTool(
	ctx context.Context, p domain.Project, tool string, arguments json.RawMessage, progress func(json.RawMessage),
) (result json.RawMessage, err error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	params := map[string]any{"name": tool, "arguments": arguments}
	if progress != nil {
		params["_meta"] = map[string]any{"progressToken": 1}
	}
	err = c.withMCP(ctx, p, func(session *mcpSession) error {
		request := mcpRequest{method: "tools/call", params: params, limit: c.ToolTimeout, progress: progress}
		result, err = session.call(ctx, request)
		if domain.CodeOf(err) == domain.BadGateway {
			err = domain.WrapError(domain.BadGateway, errors.Join(domain.ErrMayHaveRun, err), domain.MessageOf(err))
		}
		return err
	})
	return result, err
}
