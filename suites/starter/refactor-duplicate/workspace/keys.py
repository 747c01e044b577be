def name_key(name):
    text = name.strip().lower()
    text = " ".join(text.split())
    return "n:" + text


def mail_key(mail):
    text = mail.strip().lower()
    text = " ".join(text.split())
    return "m:" + text
