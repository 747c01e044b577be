package model

import (
	"slices"
	"strings"
)

// Dialect is a wire format that several providers speak.
type Dialect string

const (
	Anthropic       Dialect = "anthropic"        // Anthropic Messages
	OpenAIChat      Dialect = "openai-chat"      // OpenAI Chat Completions
	OpenAIResponses Dialect = "openai-responses" // OpenAI Responses
	Gemini          Dialect = "gemini"           // Gemini generateContent
)

// Dialects are all of them.
var Dialects = []Dialect{Anthropic, OpenAIChat, OpenAIResponses, Gemini}

// Provider is where a model can be had, and how it is spoken to there.
type Provider struct {
	Name     string
	Title    string
	Dialect  Dialect
	BaseURL  string   // "" where there is none for everybody: it must be given
	Example  string   // of a base URL, where it must be given
	KeyEnv   []string // environment variables that may hold the key, the usual one first; none where none is needed
	Keyless  bool     // usually wants no key: a server on this machine
	OwnChat  bool     // another base URL than the provider's own speaks Chat Completions
	BoundTo  string   // what reasoning that is sent back is bound to
	Requires string   // what the provider refuses a tool loop without
}

// providers is the table of all that are known by name; quirks of their wire stand in the codecs. State: 2026-11.
var providers = []Provider{
	{Name: "anthropic", Title: "Anthropic", Dialect: Anthropic, BaseURL: "https://api.anthropic.com", KeyEnv: []string{"ANTHROPIC_API_KEY"}, BoundTo: "model, prefix"},
	{Name: "openai", Title: "OpenAI; with a URL, any compatible server", Dialect: OpenAIResponses, BaseURL: "https://api.openai.com/v1", KeyEnv: []string{"OPENAI_API_KEY"}, OwnChat: true, BoundTo: "model, organisation"},
	{Name: "openai-chat", Title: "OpenAI Chat Completions", Dialect: OpenAIChat, BaseURL: "https://api.openai.com/v1", KeyEnv: []string{"OPENAI_API_KEY"}},
	{Name: "openai-responses", Title: "OpenAI Responses", Dialect: OpenAIResponses, BaseURL: "https://api.openai.com/v1", KeyEnv: []string{"OPENAI_API_KEY"}, BoundTo: "model, organisation"},
	{Name: "gemini", Title: "Google Gemini", Dialect: Gemini, BaseURL: "https://generativelanguage.googleapis.com/v1beta", KeyEnv: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, BoundTo: "model, part", Requires: "thoughtSignature"},
	{Name: "vertex", Title: "Gemini on Vertex AI", Dialect: Gemini, Example: "https://aiplatform.googleapis.com/v1/publishers/google", KeyEnv: []string{"VERTEX_API_KEY", "GOOGLE_API_KEY"}, BoundTo: "model, part", Requires: "thoughtSignature"},
	{Name: "azure", Title: "Azure OpenAI, v1 API", Dialect: OpenAIChat, Example: "https://NAME.openai.azure.com/openai/v1", KeyEnv: []string{"AZURE_OPENAI_API_KEY", "AZURE_API_KEY"}},
	{Name: "bedrock", Title: "Amazon Bedrock, OpenAI-compatible", Dialect: OpenAIChat, Example: "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1", KeyEnv: []string{"AWS_BEARER_TOKEN_BEDROCK", "BEDROCK_API_KEY"}},
	{Name: "openrouter", Title: "OpenRouter", Dialect: OpenAIChat, BaseURL: "https://openrouter.ai/api/v1", KeyEnv: []string{"OPENROUTER_API_KEY"}, BoundTo: "model"},
	{Name: "ollama", Title: "Ollama", Dialect: OpenAIChat, BaseURL: "http://127.0.0.1:11434/v1", KeyEnv: []string{"OLLAMA_API_KEY"}, Keyless: true},
	{Name: "lmstudio", Title: "LM Studio", Dialect: OpenAIChat, BaseURL: "http://127.0.0.1:1234/v1", KeyEnv: []string{"LMSTUDIO_API_KEY"}, Keyless: true},
	{Name: "llamacpp", Title: "llama.cpp server", Dialect: OpenAIChat, BaseURL: "http://127.0.0.1:8080/v1", KeyEnv: []string{"LLAMACPP_API_KEY"}, Keyless: true},
	{Name: "vllm", Title: "vLLM", Dialect: OpenAIChat, BaseURL: "http://127.0.0.1:8000/v1", KeyEnv: []string{"VLLM_API_KEY"}, Keyless: true},
	{Name: "deepseek", Title: "DeepSeek", Dialect: OpenAIChat, BaseURL: "https://api.deepseek.com/v1", KeyEnv: []string{"DEEPSEEK_API_KEY"}, Requires: "reasoning_content"},
	{Name: "mistral", Title: "Mistral", Dialect: OpenAIChat, BaseURL: "https://api.mistral.ai/v1", KeyEnv: []string{"MISTRAL_API_KEY"}},
	{Name: "groq", Title: "Groq", Dialect: OpenAIChat, BaseURL: "https://api.groq.com/openai/v1", KeyEnv: []string{"GROQ_API_KEY"}},
	{Name: "xai", Title: "xAI", Dialect: OpenAIChat, BaseURL: "https://api.x.ai/v1", KeyEnv: []string{"XAI_API_KEY"}},
	{Name: "moonshot", Title: "Moonshot (Kimi)", Dialect: OpenAIChat, BaseURL: "https://api.moonshot.ai/v1", KeyEnv: []string{"MOONSHOT_API_KEY", "KIMI_API_KEY"}, Requires: "reasoning_content"},
	{Name: "zhipu", Title: "Zhipu (GLM, z.ai)", Dialect: OpenAIChat, BaseURL: "https://api.z.ai/api/paas/v4", KeyEnv: []string{"ZHIPU_API_KEY", "ZAI_API_KEY"}},
	{Name: "minimax", Title: "MiniMax", Dialect: OpenAIChat, BaseURL: "https://api.minimax.io/v1", KeyEnv: []string{"MINIMAX_API_KEY"}},
	{Name: "dashscope", Title: "DashScope (Qwen)", Dialect: OpenAIChat, BaseURL: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", KeyEnv: []string{"DASHSCOPE_API_KEY"}},
}

// Providers returns all that are known by name.
func Providers() []Provider { return slices.Clone(providers) }

// ProviderNamed finds one by its name.
func ProviderNamed(name string) (Provider, bool) {
	i := slices.IndexFunc(providers, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}, false
	}
	return providers[i], true
}

// Speaks is the dialect at a base URL, "" for the provider's own.
func (p Provider) Speaks(base string) Dialect {
	if p.OwnChat && base != "" && strings.TrimRight(base, "/") != p.BaseURL {
		return OpenAIChat
	}
	return p.Dialect
}

// KeyName is the variable that usually holds the key: "OPENAI_API_KEY".
func (p Provider) KeyName() string {
	if len(p.KeyEnv) == 0 {
		return strings.ToUpper(strings.ReplaceAll(p.Name, "-", "_")) + "_API_KEY"
	}
	return p.KeyEnv[0]
}

// URLName is the variable that may hold another base URL: "OPENAI_BASE_URL".
func (p Provider) URLName() string {
	return strings.ToUpper(strings.ReplaceAll(p.Account(), "-", "_")) + "_BASE_URL"
}

// Account is the provider whose key it is: "openai" for both of OpenAI's dialects.
func (p Provider) Account() string {
	if strings.HasPrefix(p.Name, "openai-") {
		return "openai"
	}
	return p.Name
}
