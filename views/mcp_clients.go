package views

import "encoding/json"

// MCPProps are the data needed to connect coding agents to the gateway.
type MCPProps struct {
	Gateway string // its address
	Token   bool   // the gateway requires one
}

// mcpClient holds the configuration of one kind of client.
type mcpClient struct{ id, name, text string }

// clients returns the configurations of common clients. None of them contains a token, which is in
// SWITCHYARD_API_TOKEN.
func (p MCPProps) clients() []mcpClient {
	url := p.Gateway + "/mcp"
	claude, codex := "claude mcp add --transport http switchyard "+url, "[mcp_servers.switchyard]\nurl = \""+url+"\"\n"
	plain, code := map[string]any{"type": "http", "url": url}, map[string]any{"type": "http", "url": url}
	program := map[string]any{"command": "switchyard", "args": []string{"mcp", "--gateway", p.Gateway}}
	if p.Token {
		claude += ` --header "Authorization: Bearer $SWITCHYARD_API_TOKEN"`
		codex += "bearer_token_env_var = \"SWITCHYARD_API_TOKEN\"\n"
		plain["headers"] = map[string]string{"Authorization": "Bearer ${SWITCHYARD_API_TOKEN}"}
		code["headers"] = map[string]string{"Authorization": "Bearer ${env:SWITCHYARD_API_TOKEN}"}
		program["env"] = map[string]string{"SWITCHYARD_API_TOKEN": "…"}
	}
	return []mcpClient{
		{"mcp-claude", "Claude Code", claude},
		{"mcp-codex", "Codex, in ~/.codex/config.toml", codex},
		{"mcp-code", "VS Code, in .vscode/mcp.json", indented("servers", code)},
		{"mcp-json", "Clients with an mcpServers file", indented("mcpServers", plain)},
		{"mcp-stdio", "Clients that start a program", indented("mcpServers", program)},
	}
}

func indented(list string, server map[string]any) string {
	text, err := json.MarshalIndent(map[string]any{list: map[string]any{"switchyard": server}}, "", "  ")
	if err != nil {
		panic(err) // texts only
	}
	return string(text)
}
