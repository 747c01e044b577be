import keys

print([keys.clean("  A  B "), keys.name_key(" A  B"), keys.mail_key(" X@Y "), keys.clean("")])
