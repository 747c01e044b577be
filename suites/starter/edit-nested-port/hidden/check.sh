want=$(printf 'metrics:\n  host: 0.0.0.0\n  port: 8080\nserver:\n  host: 0.0.0.0\n  port: 9090  # public\n')
[ "$(cat app.yaml)" = "$want" ]
