package shell

import (
	"net/url"
	"strings"

	"belay/effect"
)

func set(names string) map[string]bool {
	m := map[string]bool{}
	for _, n := range strings.Fields(names) {
		m[n] = true
	}
	return m
}

var (
	// senders reach other machines whatever their arguments are.
	senders = set(`curl wget aria2c fetch http https xh ssh scp sftp ftp lftp tftp telnet nc ncat netcat socat rsh rlogin rcp mosh autossh sshfs
		ping ping6 traceroute tracepath nslookup dig host whois nmap mail mailx sendmail msmtp mutt swaks gh glab hub aws gcloud gsutil az doctl heroku
		flyctl fly vercel netlify wrangler firebase kubectl helm oc eksctl argocd terraform tofu pulumi ansible ansible-playbook rclone s3cmd mc
		twine slack psql mysql mongosh redis-cli`)
	// interpreters run what they are given.
	interpreters = set(`sh bash dash zsh ksh ash fish python python2 python3 perl ruby node nodejs deno bun php lua osascript pwsh powershell source . eval`)
	// system changes the machine or who one is: never an agent's business, however it is written.
	system = set(`sudo su doas pkexec run0 sudoedit visudo gosu runuser setpriv capsh
		shutdown reboot halt poweroff init telinit kexec insmod rmmod modprobe mount umount swapon swapoff losetup mkswap fdisk parted sfdisk wipefs
		mkfs mke2fs cryptsetup lvremove vgremove pvremove grub-install efibootmgr systemctl service launchctl defaults csrutil spctl nvram
		crontab at batch useradd userdel usermod groupadd passwd chpasswd chsh chfn iptables ip6tables nft ufw firewall-cmd sysctl setenforce
		killall pkill killall5 skill snap-confine`)
	// partialSenders reach other machines with these subcommands.
	partialSenders = map[string]map[string]bool{
		"npm":        set("publish unpublish login logout adduser owner deprecate dist-tag access token star profile"),
		"pnpm":       set("publish login logout"),
		"yarn":       set("publish login logout npm"),
		"cargo":      set("publish yank login logout owner"),
		"gem":        set("push yank signin owner"),
		"docker":     set("push pull login logout search"),
		"podman":     set("push pull login logout search"),
		"skopeo":     set("copy sync delete login"),
		"poetry":     set("publish"),
		"uv":         set("publish"),
		"hatch":      set("publish"),
		"mvn":        set("deploy"),
		"nuget":      set("push"),
		"dotnet":     set("nuget"),
		"pod":        set("trunk"),
		"goreleaser": set("release"),
		"hg":         set("push pull clone"),
		"svn":        set("commit ci checkout co update up"),
	}
	gitSenders = set("push fetch pull clone ls-remote send-email svn p4 lfs fetch-pack send-pack http-push http-fetch remote-http remote-https imap-send request-pull submodule")
)

// danger adds the effects of commands that send to other machines or change the machine itself.
func (c *command) danger(name string) bool {
	rest := c.words[1:]
	switch {
	case system[name] || strings.HasPrefix(name, "mkfs."):
		if c.asks(name, rest) {
			c.add(effect.Exec, name, "it only asks")
			return true
		}
		c.add(effect.Configure, name, "`"+name+"` changes the machine or acts as somebody else")
		c.scan(rest)
		return true
	case name == "kill":
		if len(rest) > 0 && rest[0].one() && (rest[0].text == "-0" && !c.has(rest[1:], "-1", "--") || rest[0].text == "-l") {
			c.add(effect.Exec, name, "it only asks")
			return true
		}
		for _, w := range rest {
			if w.one() && w.text == "-1" && w.text != rest[0].text || len(rest) == 1 && w.text == "-1" {
				c.add(effect.Configure, name, "`kill -1` ends every process")
			}
		}
		c.opaque(name, "`kill` ends processes")
		return true
	case name == "dd":
		c.opaque(name, "`dd` copies between files and devices")
		for _, w := range rest {
			if of, ok := strings.CutPrefix(w.text, "of="); ok && w.known {
				c.target(effect.Write, word{text: of, known: true}, c.dirs)
			}
		}
		return true
	case senders[name]:
		if c.version(name) {
			return true
		}
		if name == "kubectl" && len(rest) > 0 && (c.has(rest[:1], "version") && c.has(rest, "--client", "--client=true") || c.has(rest[:1], "config") && c.has(rest, "current-context", "get-contexts", "get-clusters")) {
			return false
		}
		if (name == "terraform" || name == "tofu") && c.terraform(name) {
			return true
		}
		c.send(name, rest)
		return true
	case name == "rsync":
		c.opaque(name, "`rsync` writes files")
		for _, w := range rest {
			if !w.known || remote(w.text) {
				c.send(name, rest)
				break
			}
		}
		return true
	case name == "git":
		if sub := gitSub(rest); (gitSenders[sub] && !(sub == "submodule" && (c.has(rest[len(rest)-1:], "submodule", "status") || len(rest) > 1 && c.has(rest[len(rest)-2:len(rest)-1], "status")))) || sub == "remote" && c.has(rest, "update", "show", "prune") || sub == "archive" && c.hasPrefix(rest, "--remote") {
			if sub == "lfs" || sub == "submodule" {
				c.opaque(name, "`git %s` changes the repository", sub)
			}
			c.gitSend(sub, rest)
			return true
		}
		return false
	case partialSenders[name] != nil:
		for _, w := range rest {
			if w.one() && partialSenders[name][w.text] {
				c.add(effect.Connect, "", "`"+name+" "+w.text+"` sends to another machine")
				c.opaque(name, "`%s` can do anything", name)
				return true
			}
		}
		return false
	}
	return false
}

// asks says that a command which can change the machine only asks about it.
func (c *command) asks(name string, rest []word) bool {
	switch name {
	case "systemctl", "sysctl", "mount", "crontab", "defaults", "swapon", "sudo":
	default:
		return false
	}
	var args []string
	for _, w := range rest {
		if !w.one() {
			return false
		}
		args = append(args, w.text)
	}
	switch name {
	case "systemctl":
		verb := false
		for i, a := range args {
			switch {
			case strings.HasPrefix(a, "-"):
				if !words("--no-pager --all -a --user -l --full --failed --no-legend --plain --value --quiet -q --system")[a] && !strings.HasPrefix(a, "--type=") && !strings.HasPrefix(a, "--state=") && !strings.HasPrefix(a, "--property=") && !strings.HasPrefix(a, "--lines=") && a != "-t" && a != "-p" && a != "-n" {
					return false
				}
			case !verb && (i == 0 || !words("-t -p -n")[args[i-1]]):
				if verb = words("status list-units list-unit-files list-timers list-sockets is-active is-enabled is-failed show cat list-dependencies get-default is-system-running")[a]; !verb {
					return false
				}
			}
		}
		return verb || len(args) > 0 && args[0] == "--failed"
	case "sysctl":
		for _, a := range args {
			if strings.Contains(a, "=") || strings.HasPrefix(a, "-") && !words("-a -n -e -N")[a] {
				return false
			}
		}
		return len(args) > 0
	case "mount":
		return len(args) == 0 || len(args) == 1 && args[0] == "-l"
	case "crontab":
		return len(args) == 1 && args[0] == "-l"
	case "defaults":
		return len(args) > 0 && args[0] == "read"
	case "swapon":
		return len(args) == 1 && (args[0] == "--show" || args[0] == "-s")
	case "sudo":
		return len(args) == 1 && args[0] == "--version"
	}
	return false
}

func versionOnly(rest []word) bool {
	return len(rest) == 1 && rest[0].one() && (rest[0].text == "--version" || rest[0].text == "--help")
}

// send adds a connection to each host that stands in the arguments, and what such a command may write.
func (c *command) send(name string, rest []word) {
	why := "`" + name + "` talks to another machine"
	found := false
	for i, w := range rest {
		if host := hostOf(name, w.text, i, rest); w.known && host != "" {
			c.add(effect.Connect, host, why)
			found = true
		}
	}
	if !found {
		c.add(effect.Connect, "", why)
	}
	c.opaque(name, "`%s` may write files", name)
}

func hostOf(name, text string, i int, rest []word) string {
	if u, err := url.Parse(text); err == nil && u.Host != "" && strings.Contains(text, "://") {
		return u.Host
	}
	if remote(text) {
		host, _, _ := strings.Cut(text, ":")
		return host[strings.LastIndex(host, "@")+1:]
	}
	switch name {
	case "ssh", "nc", "ncat", "netcat", "telnet", "ping", "dig", "nslookup", "host", "curl", "wget", "sftp", "ftp":
		if i > 0 && rest[i-1].known && strings.HasPrefix(rest[i-1].text, "-") && len(rest) > i+1 {
			return "" // an option's value, as far as that can be told
		}
		if !strings.HasPrefix(text, "-") && (i == 0 || strings.HasPrefix(rest[i-1].text, "-")) {
			host, _, _ := strings.Cut(text[strings.LastIndex(text, "@")+1:], "/")
			return host
		}
	}
	return ""
}

// remote recognises host:path, as scp and rsync write it.
func remote(text string) bool {
	host, _, ok := strings.Cut(text, ":")
	return ok && host != "" && !strings.ContainsAny(host, "/=") && !strings.HasPrefix(host, "-")
}

// gitSub returns git's subcommand, past the options that stand before it.
func gitSub(rest []word) string {
	for i := 0; i < len(rest); i++ {
		w := rest[i]
		if !w.one() {
			return ""
		}
		switch w.text {
		case "-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix", "--config-env":
			i++
			continue
		}
		if !strings.HasPrefix(w.text, "-") {
			return w.text
		}
	}
	return ""
}

// gitFetches are the subcommands of git that get and do not send.
var gitFetches = map[string]bool{"clone": true, "fetch": true, "pull": true, "ls-remote": true, "submodule": true, "remote": true}

func (c *command) gitSend(sub string, rest []word) {
	why, target := "`git "+sub+"` talks to another machine", ""
	after := false
	for _, w := range rest {
		switch {
		case w.one() && w.text == sub && !after:
			after = true
		case !after || !w.known:
		case sub == "push" && (w.text == "-f" || w.text == "-d" || strings.HasPrefix(w.text, "--force") || strings.HasPrefix(w.text, "--mirror") || strings.HasPrefix(w.text, "--delete") || strings.HasPrefix(w.text, "+")):
			why = "`git push` with " + w.text + " rewrites what is on another machine"
		case !strings.HasPrefix(w.text, "-") && target == "":
			target = w.text
			if host := hostOf("git", w.text, 0, nil); host != "" {
				target = host
			}
		}
	}
	if target == "" {
		target = "origin"
	}
	kind := effect.Connect
	if gitFetches[sub] {
		kind = effect.Fetch
	}
	c.add(kind, target, why)
	if sub != "push" && sub != "ls-remote" {
		c.opaque("git", "`git %s` changes the repository", sub)
	}
}

func (c *command) has(rest []word, texts ...string) bool {
	for _, w := range rest {
		for _, t := range texts {
			if w.one() && w.text == t {
				return true
			}
		}
	}
	return false
}

func (c *command) hasPrefix(rest []word, prefix string) bool {
	for _, w := range rest {
		if w.known && strings.HasPrefix(w.text, prefix) {
			return true
		}
	}
	return false
}
