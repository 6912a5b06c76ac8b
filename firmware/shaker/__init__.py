"""The shaker: electronic half of the Fish-Prawn-Crab cup. Start reading at app.py."""
